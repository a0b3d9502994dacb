"""Makes and keeps the managed runtime: a Python environment with torch, beside the program.

    python -m cuda_installer detect | plan | install | verify | remove | configure

It needs a uv binary and the standard library, and knows nothing of the program that uses it. An
installation is a transaction: a new folder is filled, real code is run in it, and only then one
file is renamed that says which environment counts. Whatever happens before leaves the former
environment as it was.
"""
