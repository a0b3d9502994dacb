"""Calls of models, from the request to their one end: sent, tried again, followed, and noted."""
