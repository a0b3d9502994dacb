"""Makes documents of notes: Markdown in, a file that stands on its own out."""
