"""What every domain stands on; knows no domain itself."""
