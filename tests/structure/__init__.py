"""The borders between packages that import-linter has no words for."""
