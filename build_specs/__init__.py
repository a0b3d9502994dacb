"""How the sidecar becomes a program that needs no Python: the spec, its hooks, the command."""
