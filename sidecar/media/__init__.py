"""Recordings and other attachments, and the transcripts that are made of them."""
