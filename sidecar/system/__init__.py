"""The program itself: its state, its host's paths, tickets and its own documentation."""
