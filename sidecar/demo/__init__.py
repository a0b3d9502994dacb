"""The demonstration: one recording walked through the product, as a host would do it."""
