"""What only some machines can show: a test that needs it is skipped, and says what is missing."""

import shutil

import pytest

from sidecar.export.pdf_support import install_command, missing_for_pdf


def need_pdf() -> None:
    """Skip the test where pages can't be laid out."""
    missing = missing_for_pdf()
    if missing:
        pytest.skip(f"{', '.join(missing)} not here ({install_command()})")


def need_program(name: str) -> None:
    """Skip the test where a program that looks at files isn't installed."""
    if shutil.which(name) is None:
        pytest.skip(f"{name} isn't here")
