"""Which provider does what besides chat: embedding, transcription and speaker matching, with local models to fall back on."""
