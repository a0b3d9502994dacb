"""The host protocol, shown on real processes and real sockets."""
