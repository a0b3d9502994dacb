"""Models that lie on this computer."""
