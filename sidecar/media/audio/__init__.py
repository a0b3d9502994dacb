"""Recordings as files: looked into, decoded, and judged for being cut off."""
