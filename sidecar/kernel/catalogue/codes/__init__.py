"""The error codes, one module for each group of domains."""
