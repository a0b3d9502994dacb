"""``python -m cuda_installer``."""

import sys

from cuda_installer.cli import main

if __name__ == "__main__":
    sys.exit(main())
