"""Pictures as a model takes them: PNG or JPEG, upright, of a bounded size, with nothing but the pixels."""

import base64
import io
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sidecar.documents.refusal import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from PIL.Image import Image

MOST_PIXELS: Final = 120_000_000
MOST_SIDE: Final = 4096
"""Pixels. No model looks at more, and some refuse more than 8,000."""
_LEAST_SIDE: Final = 16
_FORMATS: Final = ("PNG", "JPEG", "WEBP")
_QUALITY: Final = 90
_SHRINK: Final = 0.8


def data_uri(path: Path, max_bytes: int, check: "Callable[[], None]") -> str:
    """Return the picture at *path* as a data URI whose file has at most *max_bytes* bytes.

    WebP becomes PNG or JPEG, which every model reads. Raises :class:`Refused`.
    """
    with _opened(path) as image:
        lossless = image.format != "JPEG"
        upright = _prepared(image)
    check()
    while True:
        mime_type, content = _encoded(upright, max_bytes, lossless=lossless)
        if len(content) <= max_bytes:
            return f"data:{mime_type};base64,{base64.b64encode(content).decode('ascii')}"
        check()
        # The size goes with the area.
        factor = min(_SHRINK, (max_bytes / len(content)) ** 0.5)
        width, height = (max(1, int(side * factor)) for side in upright.size)
        if max(width, height) < _LEAST_SIDE:
            raise Refused("too_large")
        upright = upright.resize((width, height))


def _opened(path: Path) -> "Image":
    from PIL import Image, UnidentifiedImageError  # noqa: PLC0415 - in the worker alone

    Image.MAX_IMAGE_PIXELS = None  # counted here
    try:
        image = Image.open(path, formats=_FORMATS)
    except FileNotFoundError as error:
        raise Refused("missing") from error
    except UnidentifiedImageError as error:
        raise Refused("wrong_type") from error
    except (OSError, ValueError, SyntaxError) as error:
        raise Refused("damaged") from error
    if image.width * image.height > MOST_PIXELS:
        image.close()
        raise Refused("too_many_pixels")
    return image


def _prepared(image: "Image") -> "Image":
    """Return the decoded picture: small enough, upright, and in the colours of screens."""
    from PIL import ImageOps  # noqa: PLC0415

    profile = image.info.get("icc_profile")
    try:
        # A JPEG can be decoded at a half, a quarter or an eighth of its size.
        image.draft(None, (MOST_SIDE, MOST_SIDE))
        image.load()
        image = ImageOps.exif_transpose(image)
    except (OSError, ValueError, SyntaxError, EOFError, OverflowError) as error:
        raise Refused("damaged") from error
    if image.mode.startswith("I") or image.mode == "F":
        # 16 bits for each pixel.
        image = image.point(lambda value: value * (1 / 256)).convert("L")
    elif image.mode == "1":
        image = image.convert("L")
    elif image.mode in ("P", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
    factor = max(image.size) // MOST_SIDE
    if factor > 1:
        image = image.reduce(factor)
    if max(image.size) > MOST_SIDE:
        image.thumbnail((MOST_SIDE, MOST_SIDE))
    image = _on_screen(image, profile)
    return image.convert("RGBA" if image.has_transparency_data else "RGB")


def _on_screen(image: "Image", profile: bytes | None) -> "Image":
    """Translate the colours of another colour space, which nobody would know without its profile."""
    from PIL import ImageCms  # noqa: PLC0415

    if not profile or image.mode not in ("RGB", "RGBA", "CMYK"):
        return image
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        mode = "RGB" if image.mode == "CMYK" else image.mode
        translated = ImageCms.profileToProfile(
            image, source, ImageCms.createProfile("sRGB"), outputMode=mode
        )
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
        return image
    return translated or image


def _encoded(image: "Image", max_bytes: int, *, lossless: bool) -> tuple[str, bytes]:
    """Return type and content: JPEG for photographs, PNG for what has sharp edges or is transparent."""
    transparent = image.mode == "RGBA" and image.getchannel("A").getextrema() != (255, 255)
    if lossless or transparent:
        content = _saved(image, "PNG")
        if transparent or len(content) <= max_bytes:
            return "image/png", content
    return "image/jpeg", _saved(image.convert("RGB"), "JPEG", quality=_QUALITY)


def _saved(image: "Image", format_: str, **options: int) -> bytes:
    clean = image.copy()
    clean.info = {}
    buffer = io.BytesIO()
    clean.save(buffer, format_, **options)
    return buffer.getvalue()
