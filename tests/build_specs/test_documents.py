"""The libraries and fonts that a frozen program brings along."""

import sys
from pathlib import Path

import pytest

from build_specs import documents
from build_specs.documents import FONTS, MissingForDocuments, font_files, pango_binaries


def test_fonts_are_taken_from_a_folder_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in FONTS:
        (tmp_path / name).write_bytes(b"font")
    monkeypatch.setenv(documents.FONTS_VARIABLE, str(tmp_path))
    assert sorted(font_files()) == sorted((str(tmp_path / name), "fonts") for name in FONTS)


def test_a_font_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "NEEDED_FONTS", ("NoSuchFont.ttf",))
    with pytest.raises(MissingForDocuments, match=r"NoSuchFont\.ttf.*apt-get install"):
        font_files()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="libraries are listed on Linux")
def test_libraries_are_files_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(Path(file).is_file() for file, _ in pango_binaries())
    monkeypatch.setattr(documents, "LIBRARIES", ("libnosuch.so.9",))
    with pytest.raises(MissingForDocuments, match=r"libnosuch\.so\.9"):
        pango_binaries()
