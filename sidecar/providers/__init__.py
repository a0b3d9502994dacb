"""Model providers: their settings, and one way to call a model whatever protocol it speaks."""
