"""NotesAgent Sidecar: the local server behind the notes app."""
