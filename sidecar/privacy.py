"""Keeps libraries from talking about their user.

ONNX Runtime's official builds from 1.29 on send events to their maker by default on Linux and
macOS, keep a device id in the user's cache folder and a session file in the temporary one. The
variables below turn that off before the library is loaded; it reads them once. Hugging Face's
client, which faster-whisper imports, has the same kind of switch, and is kept from the network
altogether: weights are the program's own to fetch.
"""

import os
from typing import Final

QUIET: Final = {
    "ORT_DISABLE_TELEMETRY": "1",
    "ORT_TELEMETRY_DISABLED": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
}


def silence_libraries() -> None:
    """Set the variables for this process and all that it starts."""
    os.environ.update(QUIET)
