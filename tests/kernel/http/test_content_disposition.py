import re
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.kernel.http.content_disposition import content_disposition


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=300), st.booleans())
def test_any_name_makes_a_header_that_gives_it_back(name: str, inline: bool) -> None:
    header = content_disposition(name, inline=inline)
    shown = "inline" if inline else "attachment"
    assert re.fullmatch(
        rf'{shown}; filename="[^"\\\r\n]+"; filename\*=UTF-8\'\'[\w.~%-]+', header, re.ASCII
    )
    assert unquote(header.rpartition("''")[2]) == name


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("Café.pdf", "Cafe.pdf"),
        ("操作系统.docx", "file.docx"),
        ('a"b%.md', "a_b_.md"),
        ("读书", "file"),
    ],
)
def test_an_old_client_gets_what_ascii_has_of_the_name(name: str, plain: str) -> None:
    assert f'filename="{plain}"' in content_disposition(name)
