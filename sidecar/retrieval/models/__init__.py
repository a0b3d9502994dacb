"""The worker process that runs embedding models and rerankers, and what asks it."""
