"""Programs that measure. They print ratios and fail nothing."""
