"""The colours of a document: its theme, its code, and what the options ask for."""
