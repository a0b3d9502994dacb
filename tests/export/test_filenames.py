"""Names of downloads."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.export.filenames import file_name


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("操作系统复习", "操作系统复习.html"),
        ('a/b\\c:d*e?f"g<h>i|j', "a_b_c_d_e_f_g_h_i_j.html"),
        ("line\r\nbreak\ttab", "line break tab.html"),
        ("  ..  ", "export.html"),
        ("", "export.html"),
        (None, "export.html"),
        ("CON", "_CON.html"),
        ("nul.txt", "_nul.txt.html"),
        ("com1", "_com1.html"),
        (".hidden", "hidden.html"),
        ("ends with dot.", "ends with dot.html"),
        ("x" * 500, "x" * 100 + ".html"),
        ("evil\u202elmth.exe", "evillmth.exe.html"),
    ],
)
def test_a_title_becomes_a_name(title: str | None, expected: str) -> None:
    assert file_name(title, ".html") == expected


@given(st.text(max_size=300))
def test_any_title_becomes_a_safe_name(title: str) -> None:
    name = file_name(title, ".html")
    assert name.endswith(".html")
    assert len(name.encode()) <= 255
    assert not re.search(r'[<>:"/\\|?*\x00-\x1f\x7f]', name)
    assert name[0] not in ". "
    assert not name.removesuffix(".html").endswith((".", " "))
