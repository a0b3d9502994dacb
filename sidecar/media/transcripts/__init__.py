"""What is made of a transcript: revisions, subtitles and notes."""
