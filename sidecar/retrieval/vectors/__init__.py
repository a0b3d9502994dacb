"""Search by the likeness of vectors: where they are kept, and how they are searched."""
