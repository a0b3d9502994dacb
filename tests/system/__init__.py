"""Tests of the program's own paths."""
