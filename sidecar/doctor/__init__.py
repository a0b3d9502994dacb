"""Says what is installed and usable on this computer, and what to do where something is not."""
