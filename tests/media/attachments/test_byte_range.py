import pytest

from sidecar.kernel.errors import ProjectError
from sidecar.media.attachments.byte_range import usable_range


@pytest.mark.parametrize(
    "header", ["bytes=0-0", "bytes=5-", "bytes=-3", "bytes=0-99999", "Bytes = 0-1, 4-5"]
)
def test_a_range_inside_the_file_is_usable(header: str) -> None:
    assert usable_range(header, 10)


@pytest.mark.parametrize(
    "header",
    [
        *("bytes", "items=0-1", "bytes=a-b", "bytes=5-2", "bytes=-", "bytes="),
        *(f"bytes={'9' * 5000}-", f"bytes=0-{'9' * 5000}", f"bytes=-{'9' * 5000}"),
    ],
)
def test_what_is_no_range_is_ignored(header: str) -> None:
    assert not usable_range(header, 10)


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=99-100", "bytes=-0"])
def test_a_range_past_the_end_is_refused_with_the_size(header: str) -> None:
    with pytest.raises(ProjectError) as caught:
        usable_range(header, 10)
    assert caught.value.status == 416
    assert caught.value.headers["Content-Range"] == "bytes */10"
