"""The one place that states the product's version."""

VERSION = "0.1.0"
