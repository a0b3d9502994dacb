"""The user's Markdown files: read, written safely, and kept known by stable ids."""
