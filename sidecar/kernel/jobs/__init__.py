"""One engine for everything that takes time."""
