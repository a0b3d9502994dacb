"""Transcription jobs: from a recording to the segments of a transcript."""
