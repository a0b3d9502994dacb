"""Chat over the notes: conversations with branches, answers that look things up and cite them."""
