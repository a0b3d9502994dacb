"""What other parts of the program, and clients, say to this one: model calls, request rules, wire models."""
