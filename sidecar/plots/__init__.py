"""Plots of functions: a small language for them, and their pictures."""
