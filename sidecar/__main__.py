"""The program's entry, from source (``python -m sidecar``) and frozen."""

import multiprocessing
import sys

from sidecar.cli import main

if __name__ == "__main__":
    # A frozen child that a library starts through multiprocessing must not become a second server.
    multiprocessing.freeze_support()
    sys.exit(main())
