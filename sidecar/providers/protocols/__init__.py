"""The protocols that providers speak: requests into bodies, bytes into events. Nothing here opens a connection."""
