"""NotesAgent Sidecar: the local server behind the notes app."""

from sidecar.privacy import silence_libraries

# Here, so that no way into the program can load a library before it.
silence_libraries()
