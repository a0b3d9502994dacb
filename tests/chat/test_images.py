"""Which pictures a message of a model can hold."""

import base64
import io

import pytest
from PIL import Image

from sidecar.providers.schemas.model_call import IMAGE_BYTES, MOST_IMAGES, Message

PNG = "data:image/png;base64,iVBORw0KGgo"


def uri(kind: str, size: tuple[int, int]) -> str:
    target = io.BytesIO()
    Image.new("RGB", size, "teal").save(target, kind)
    data = base64.b64encode(target.getvalue()).decode()
    return f"data:image/{kind.lower()};base64,{data}"


@pytest.mark.proves("chat.images.data-uri")
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
@pytest.mark.parametrize("size", [(1, 1), (17, 9), (300, 200)])
def test_pictures_of_three_types(kind: str, size: tuple[int, int]) -> None:
    picture = uri(kind, size)
    assert Message("user", "x", images=(picture,) * MOST_IMAGES).images[0] == picture


@pytest.mark.proves("chat.images.data-uri", "chat.images.size-limit")
@pytest.mark.parametrize(
    "wrong",
    [
        "https://example.org/a.png",
        "file:///etc/passwd",
        "/etc/passwd",
        "",
        "data:image/gif;base64,R0lGODlhAQABAAAAACw=",
        "data:image/svg+xml;base64,PHN2Zy8+",
        "data:text/html;base64,iVBORw0KGgo=",
        "data:image/png,iVBORw0KGgo=",
        "data:image/png;base64,R0lGODlhAQABAAAAACw=",
        "data:image/jpeg;base64,iVBORw0KGgo=",
        "data:image/webp;base64,UklGRgAAAABXQVZF",
        f"{PNG}<script>",
        f"{PNG}=\nhttps://example.org",
        PNG + "A" * (IMAGE_BYTES * 4 // 3 + 100),
    ],
    ids=lambda wrong: wrong[:40],
)
def test_nothing_else_is_a_picture(wrong: str) -> None:
    with pytest.raises(ValueError, match="not data URIs"):
        Message("user", "x", images=(wrong,))


@pytest.mark.proves("chat.images.size-limit")
def test_eight_pictures_a_message() -> None:
    picture = uri("PNG", (1, 1))
    with pytest.raises(ValueError, match="not data URIs"):
        Message("user", "x", images=(picture,) * (MOST_IMAGES + 1))
