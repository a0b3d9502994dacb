"""Tells a full disk from whatever else a system may refuse."""

import errno
from typing import Final

# A used-up share of a disk, and a file larger than its file system holds, are the same to a user.
_NUMBERS: Final = frozenset({errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)})


def is_full_disk(error: OSError) -> bool:
    """Whether *error* says that there is no room for what was to be written."""
    return error.errno in _NUMBERS
