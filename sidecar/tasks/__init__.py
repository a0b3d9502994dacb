"""The user's to-dos."""
