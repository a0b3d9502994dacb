"""The test suite; it mirrors the packages folder by folder."""
