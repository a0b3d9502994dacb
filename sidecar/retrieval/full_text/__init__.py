"""Search by words: the full text index, and how a query is read."""
