"""Opaque ids for everything that the API names."""

import secrets
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def _base32(value: int, length: int) -> str:
    digits = []
    for _ in range(length):
        digits.append(_ALPHABET[value & 31])
        value >>= 5
    return "".join(reversed(digits))


def new_id(prefix: str) -> str:
    """Return a new id such as ``attachment_01k5…``.

    The token holds 48 bits of time (milliseconds) and 80 random bits, so that ids made later sort
    later. Clients treat the whole as opaque.
    """
    milliseconds = time.time_ns() // 1_000_000
    return f"{prefix}_{_base32(milliseconds, 10)}{_base32(secrets.randbits(80), 16)}"
