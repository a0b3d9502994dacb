"""Programs that try a sidecar from outside, whether it runs from source, frozen or installed."""
