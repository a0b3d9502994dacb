"""Attached files: taken in, checked, kept, and given out again."""
