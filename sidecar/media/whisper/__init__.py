"""The local recogniser: its worker, and what the worker does with the sound."""
