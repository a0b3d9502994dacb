"""Search over the blocks of the notes: full text, vectors, and both together."""
