"""The managed runtime as the app sees it: its status, its installation and the events of it."""
