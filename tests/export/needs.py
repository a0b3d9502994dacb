"""What only some machines can show: a test that needs it is skipped, and says what is missing."""

import shutil

import pytest

from sidecar.export.pdf.support import pdf_support


def need_pdf() -> None:
    """Skip the test where pages can't be laid out."""
    support = pdf_support()
    if support.missing:
        pytest.skip(f"{', '.join(support.missing)} not here ({support.install_command})")


def need_program(name: str) -> None:
    """Skip the test where a program that looks at files isn't installed."""
    if shutil.which(name) is None:
        pytest.skip(f"{name} isn't here")
