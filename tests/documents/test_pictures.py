"""Pictures of every kind that Pillow makes, and bad ones."""

import asyncio
import base64
import io
import struct
import zlib
from pathlib import Path

import psutil
import pytest
from PIL import Image, ImageCms, ImageDraw, PngImagePlugin

from sidecar.documents import service
from sidecar.documents.service import DocumentService
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.paths import DataPaths
from sidecar.kernel.workers.client import WorkerPool
from tests.documents.samples import WORD, word_file, written
from tests.kernel.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="package")

MEBIBYTE = 1024 * 1024
ORIENTATION = 0x0112


async def shown(
    documents: DocumentService, path: Path, max_bytes: int = 5 * MEBIBYTE
) -> Image.Image:
    """Return the picture that a model is given, and see that it keeps what is promised."""
    uri = await documents.image_data_uri(path, name="图.png", max_bytes=max_bytes)
    head, _, encoded = uri.partition(",")
    content = base64.b64decode(encoded, validate=True)
    assert len(content) <= max_bytes
    image = Image.open(io.BytesIO(content))
    assert head == f"data:{image.get_format_mimetype()};base64"
    assert image.format in ("PNG", "JPEG")
    image.load()
    return image


async def refused(documents: DocumentService, path: Path) -> str:
    with pytest.raises(ProjectError) as caught:
        await documents.image_data_uri(path, name="图.png")
    assert caught.value.code == "CHAT_ATTACHMENT_FAILED"
    assert "图.png" in caught.value.message("zh-CN")
    return str(caught.value.details["reason"])


def drawing(mode: str = "RGB", size: tuple[int, int] = (60, 40)) -> Image.Image:
    """Return a red picture whose left upper corner is blue."""
    image = Image.new("RGB", size, "red")
    ImageDraw.Draw(image).rectangle((0, 0, size[0] // 4, size[1] // 4), fill="blue")
    return image.convert(mode)


def is_near(pixel: object, wanted: tuple[int, int, int]) -> bool:
    assert isinstance(pixel, tuple)
    return all(abs(a - b) < 40 for a, b in zip(pixel[:3], wanted, strict=True))


@pytest.mark.parametrize(
    ("format_", "mode", "expected"),
    [
        ("PNG", "RGB", "PNG"),
        ("PNG", "RGBA", "PNG"),
        ("PNG", "P", "PNG"),
        ("PNG", "LA", "PNG"),
        ("PNG", "1", "PNG"),
        ("JPEG", "RGB", "JPEG"),
        ("JPEG", "L", "JPEG"),
        ("JPEG", "CMYK", "JPEG"),
        ("WEBP", "RGB", "PNG"),
        ("WEBP", "RGBA", "PNG"),
    ],
)
async def test_every_kind_of_picture_is_given_as_png_or_jpeg(
    documents: DocumentService, file: Path, format_: str, mode: str, expected: str
) -> None:
    drawing(mode).save(file, format_)
    image = await shown(documents, file)
    assert image.format == expected
    assert image.size == (60, 40)
    if mode in ("RGB", "RGBA", "P", "CMYK"):
        rgb = image.convert("RGB")
        assert is_near(rgb.getpixel((2, 2)), (0, 0, 255))
        assert is_near(rgb.getpixel((50, 30)), (255, 0, 0))


async def test_sixteen_bits_of_grey_keep_their_brightness(
    documents: DocumentService, file: Path
) -> None:
    Image.new("I;16", (20, 20), 32768).save(file, "PNG")
    image = (await shown(documents, file)).convert("L")
    assert abs(int(str(image.getpixel((5, 5)))) - 128) <= 1


@pytest.mark.parametrize("orientation", range(1, 9))
async def test_a_photograph_stands_upright_and_tells_no_place(
    documents: DocumentService, file: Path, orientation: int
) -> None:
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    exif[0x010E] = "机密说明"
    exif.get_ifd(0x8825)[2] = (52.0, 31.0, 12.0)
    drawing().save(file, "JPEG", exif=exif, comment=b"secret", quality=95)

    image = await shown(documents, file)

    assert image.size == ((60, 40) if orientation < 5 else (40, 60))
    corners = {
        1: (2, 2),
        2: (57, 2),
        3: (57, 37),
        4: (2, 37),
        5: (2, 2),
        6: (37, 2),
        7: (37, 57),
        8: (2, 57),
    }
    assert is_near(image.convert("RGB").getpixel(corners[orientation]), (0, 0, 255))
    assert not image.getexif()
    assert not {"exif", "comment", "icc_profile", "xmp"} & image.info.keys()


async def test_texts_in_a_png_are_left_out(documents: DocumentService, file: Path) -> None:
    note = PngImagePlugin.PngInfo()
    note.add_itxt("Author", "张三")
    drawing().save(file, "PNG", pnginfo=note)
    uri = await documents.image_data_uri(file, name="a")
    assert "张三".encode() not in base64.b64decode(uri.partition(",")[2])


async def test_colours_of_another_space_are_translated(
    documents: DocumentService, file: Path
) -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    # The same with red and green in each other's place.
    swapped = profile.replace(b"rXYZ", b"....").replace(b"gXYZ", b"rXYZ").replace(b"....", b"gXYZ")
    for mode, format_ in (("RGB", "PNG"), ("RGBA", "PNG"), ("RGB", "JPEG"), ("RGB", "WEBP")):
        drawing(mode).save(file, format_, icc_profile=swapped)
        image = (await shown(documents, file)).convert("RGB")
        assert is_near(image.getpixel((50, 30)), (0, 255, 0))
        assert is_near(image.getpixel((2, 2)), (0, 0, 255))
    drawing().save(file, "PNG", icc_profile=b"no profile at all")
    assert is_near((await shown(documents, file)).getpixel((50, 30)), (255, 0, 0))


@pytest.mark.proves("chat.images.size-limit")
@pytest.mark.parametrize(("mode", "format_"), [("RGB", "JPEG"), ("RGBA", "PNG")])
async def test_a_large_picture_is_scaled_down_until_it_fits(
    documents: DocumentService, file: Path, mode: str, format_: str
) -> None:
    noise = Image.effect_noise((1500, 1000), 90).convert(mode)
    if mode == "RGBA":
        noise.putalpha(Image.effect_noise((1500, 1000), 90))
    noise.save(file, "PNG")
    image = await shown(documents, file, MEBIBYTE // 4)
    assert image.format == format_
    assert image.width < 1500
    assert abs(image.width / image.height - 1.5) < 0.02


@pytest.mark.proves("chat.images.size-limit")
async def test_no_side_is_longer_than_models_look_at(
    documents: DocumentService, file: Path
) -> None:
    drawing(size=(10_000, 50)).save(file, "PNG")
    image = await shown(documents, file)
    assert image.size[0] <= 4096
    assert image.size[1] in (20, 21)


async def test_of_a_moving_picture_the_first_frame_is_taken(
    documents: DocumentService, file: Path
) -> None:
    frames = [drawing(), Image.new("RGB", (60, 40), "green")]
    frames[0].save(file, "WEBP", save_all=True, append_images=frames[1:], lossless=True)
    assert is_near((await shown(documents, file)).convert("RGB").getpixel((50, 30)), (255, 0, 0))


@pytest.mark.parametrize("format_", ["GIF", "BMP", "TIFF", "ICO"])
async def test_other_kinds_are_refused(
    documents: DocumentService, file: Path, format_: str
) -> None:
    drawing().save(file, format_)
    assert await refused(documents, file) == "wrong_type"


@pytest.mark.parametrize(
    "content", [b"", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"%PDF-1.7"]
)
async def test_what_is_no_picture_is_refused(
    documents: DocumentService, file: Path, content: bytes
) -> None:
    written(file, content)
    assert await refused(documents, file) == "wrong_type"


async def test_a_picture_that_is_gone(documents: DocumentService, file: Path) -> None:
    assert await refused(documents, file) == "missing"


@pytest.mark.parametrize("format_", ["PNG", "JPEG", "WEBP"])
async def test_a_picture_that_was_cut_off_is_damaged(
    documents: DocumentService, file: Path, format_: str
) -> None:
    buffer = io.BytesIO()
    Image.effect_noise((300, 200), 90).convert("RGB").save(buffer, format_)
    written(file, buffer.getvalue()[: buffer.tell() // 2])
    assert await refused(documents, file) == "damaged"


def png_of(width: int, height: int, data: bytes) -> bytes:
    """Return a PNG of one bit for each pixel whose compressed pixels are *data*."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        )

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize(
    "size", [(30_000, 30_000), (2_000_000_000, 2_000_000_000), (120_000_001, 1)]
)
async def test_a_picture_with_too_many_pixels_is_never_decoded(
    documents: DocumentService, file: Path, size: tuple[int, int]
) -> None:
    written(file, png_of(*size, zlib.compress(bytes(1000))))
    assert await refused(documents, file) == "too_many_pixels"


async def test_a_large_picture_within_the_bounds_is_taken(
    documents: DocumentService, file: Path
) -> None:
    width, height = 10_000, 11_000
    rows = zlib.compress(bytes((width // 8 + 1) * height), 1)
    written(file, png_of(width, height, rows))
    assert max((await shown(documents, file)).size) <= 4096


async def test_pictures_and_documents_are_read_side_by_side(
    documents: DocumentService, tmp_path: Path
) -> None:
    paths = []
    for number in range(8):
        path = tmp_path / str(number)
        drawing(size=(600 + number, 400)).save(path, "PNG")
        paths.append(path)
    text = word_file("<w:p><w:r><w:t>文</w:t></w:r></w:p>", tmp_path / "text")

    images, found = await asyncio.gather(
        asyncio.gather(*(shown(documents, path) for path in paths)),
        documents.extract_text(text, WORD, name="a", limit=10),
    )

    assert [image.width for image in images] == [600 + number for number in range(8)]
    assert found.text == "文"


async def test_a_cancellation_ends_the_work(paths: DataPaths, file: Path) -> None:
    Image.effect_noise((6000, 6000), 90).convert("RGB").save(file, "PNG", compress_level=0)
    workers = WorkerPool()
    documents = DocumentService(paths, workers)
    try:
        reading = asyncio.create_task(documents.image_data_uri(file, name="a"))
        await until(
            lambda: any(memory_of(child.pid) > 100 * MEBIBYTE for child in workers.children())
        )
        assert not reading.done()

        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

        drawing().save(file, "PNG")
        assert (await shown(documents, file)).size == (60, 40)
    finally:
        await workers.close()


def memory_of(pid: int) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


async def test_what_takes_too_long_is_ended(
    documents: DocumentService, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "PICTURE_SECONDS", 0.01)
    Image.effect_noise((3000, 3000), 90).convert("RGB").save(file, "PNG", compress_level=0)
    assert await refused(documents, file) == "took_too_long"
    monkeypatch.undo()
    drawing().save(file, "PNG")
    assert (await shown(documents, file)).size == (60, 40)
