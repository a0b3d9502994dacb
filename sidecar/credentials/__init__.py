"""The secrets that the user gives for providers: they go in and never come out."""
