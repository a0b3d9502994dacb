"""Real models of voices for the tests, from a package that carries them."""
