"""Documents in pages."""
