"""Work in child processes, and how those are started and ended."""
