import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.media.attachments.file_names import LONGEST, safe_file_name, stem_of, suffix_of


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("../../x.wav", "x.wav"),
        ("C:\\x.wav", "x.wav"),
        ("C:x.wav", "x.wav"),
        ("\\\\server\\share\\会议.m4a", "会议.m4a"),
        ("a\r\nb\0.wav", "ab.wav"),
        ("录音 2026-08-31 🎙️.FLAC", "录音 2026-08-31 🎙️.FLAC"),
        ("e\u0301.wav", "\u00e9.wav"),
        ("safe\u202evaw.exe", "safevaw.exe"),
        ("..", "file"),
        ("", "file"),
        ("folder/", "file"),
        ("name. ", "name"),
    ],
)
def test_a_name_is_cut_down_to_what_is_safe(sent: str, kept: str) -> None:
    assert safe_file_name(sent) == kept


def test_a_long_name_keeps_its_suffix() -> None:
    kept = safe_file_name("长" * 500 + ".Webm")
    assert len(kept) == LONGEST
    assert kept.endswith(".webm")


@given(st.text(max_size=300))
def test_any_name_becomes_a_plain_one(sent: str) -> None:
    kept = safe_file_name(sent)
    assert 0 < len(kept) <= LONGEST
    assert kept not in (".", "..")
    assert not set(kept) & {"/", "\\"}
    assert not any(unicodedata.category(character) == "Cc" for character in kept)


def test_suffix_and_stem() -> None:
    assert suffix_of("TALK.M4A") == ".m4a"
    assert suffix_of("noext") == suffix_of(".wav") == ""
    assert stem_of("第一讲.v2.mp3") == "第一讲.v2"
    assert stem_of("noext") == "noext"
