"""Who speaks: speakers told apart in a recording, and voices compared."""
