"""Sizes as a person reads them."""

_UNITS = ("B", "KB", "MB", "GB", "TB")


def readable_size(count: float) -> str:
    """Return bytes in decimal units: ``145 MB``, ``1.2 GB``."""
    for unit in _UNITS[:-1]:
        if count < 1000:
            return f"{count:.1f} {unit}" if unit == "GB" else f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} {_UNITS[-1]}"
