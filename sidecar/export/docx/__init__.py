"""Documents for Word."""
