"""Pictures that the client drew."""

import base64
import hashlib
import struct
import zlib
from typing import Any

import pytest

from sidecar.export.cancellation import StopSignal
from sidecar.export.pictures.assets import AssetLimits, read_assets
from sidecar.export.pictures.images import picture_type
from sidecar.export.schemas import ExportAsset
from sidecar.kernel.errors import ProjectError
from tests.app_client import RunningApp
from tests.export import client
from tests.export.client import markdown_request
from tests.export.pictures.samples import JPEG, chunk, png
from tests.export.reading import Element, assert_inert, read_html

UNLIMITED = AssetLimits(None, None, None, None)


def asset(kind: str, source: str, content: bytes) -> dict[str, Any]:
    return {
        "kind": kind,
        "source_hash": hashlib.sha256(source.strip().encode()).hexdigest(),
        "png_base64": base64.b64encode(content).decode(),
    }


def pictures_of(document: Element) -> list[tuple[bytes, str]]:
    found = []
    for image in document.all("img"):
        prefix, _, data = image.attributes["src"].partition(",")
        assert prefix == "data:image/png;base64"
        found.append((base64.b64decode(data), image.attributes["alt"]))
    return found


@pytest.mark.proves("export.assets.hash-rule", "export.assets.reuse", "export.assets.hash-mismatch")
async def test_an_asset_stands_in_the_place_of_its_source(shared_app: RunningApp) -> None:
    text = (
        "```mermaid\ngraph TD; 甲-->B\n```\n\n$a+b$ and $a+b$ and $\\c$\n\n$$\nx^2\n$$\n\n"
        "![p](a%20b.png)\n\n```mermaid\nother\n```"
    )
    assets = [
        asset("mermaid", "graph TD; 甲-->B", png(3, 1)),
        asset("math_inline", "a+b", png(4, 1)),
        asset("math_block", "x^2", png(5, 1)),
        asset("image", "a b.png", png(6, 1)),
        asset("math_block", "\\c", png(7, 1)),
        asset("mermaid", "a+b", png(8, 1)),
    ]
    assets[1]["source_hash"] = assets[1]["source_hash"].upper()
    job, content = await client.export(shared_app, markdown_request(text, assets=assets))
    document = read_html(content)
    assert_inert(document)
    widths = [struct.unpack_from(">I", data, 16)[0] for data, _ in pictures_of(document)]
    assert widths == [3, 4, 4, 5, 6]
    assert [alt for _, alt in pictures_of(document)] == [
        "graph TD; 甲-->B",
        "a+b",
        "a+b",
        "x^2",
        "p",
    ]
    assert "$\\c$" in document.text
    assert "other" in document.text
    assert len(job["warnings"]) == 2


@pytest.mark.proves("export.assets.reencoded")
async def test_only_the_picture_gets_through(shared_app: RunningApp) -> None:
    plain = png(3, 2)
    header, rest = plain[:33], plain[33:]
    loaded = (
        header
        + chunk(b"tEXt", b"Comment\0SECRET")
        + chunk(b"iCCP", b"x\0\0" + zlib.compress(b"SECRET"))
        + chunk(b"eXIf", b"SECRET")
        + rest
        + b"SECRET after the end"
    )
    body = markdown_request("$a$", assets=[asset("math_inline", "a", loaded)])
    _, content = await client.export(shared_app, body)
    ((data, _),) = pictures_of(read_html(content))
    assert b"SECRET" not in data
    assert b"iCCP" not in data
    assert data == png(3, 2)


@pytest.mark.proves("export.assets.invalid-png", "export.assets.no-client-svg")
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>",
        b"<?xml version='1.0'?><x/>",
        b"https://example.org/a.png",
        JPEG,
        png()[:-12],
        png()[:40],
        png()[:8],
        png().replace(b"\xff\xd9", b"").replace(b"IDAT", b"IDAX"),
        png()[:-5] + b"\0" + png()[-4:],
        png().replace(struct.pack(">II", 2, 2), struct.pack(">II", 2, 3), 1),
    ],
)
async def test_anything_but_a_whole_png_is_refused(shared_app: RunningApp, content: bytes) -> None:
    body = markdown_request("$a$", assets=[asset("math_inline", "a", content)])
    status, code, details = await client.error_of(shared_app, body)
    assert (status, code) == (422, "EXPORT_ASSET_INVALID")
    assert details["asset"] == 0
    body["assets"][0]["png_base64"] = "not base64!"
    assert (await client.error_of(shared_app, body))[1] == "EXPORT_ASSET_INVALID"


async def test_the_same_part_twice_is_refused(shared_app: RunningApp) -> None:
    twice = [asset("math_inline", "a", png()), asset("math_inline", " a ", png(1, 1))]
    twice[1]["source_hash"] = twice[1]["source_hash"].upper()
    status, code, details = await client.error_of(shared_app, markdown_request("x", assets=twice))
    assert (status, code) == (422, "EXPORT_ASSET_INVALID")
    assert details == {"asset": 1, "reason": "duplicate"}
    other_kind = [twice[0], twice[1] | {"kind": "math_block"}]
    await client.export(shared_app, markdown_request("x", assets=other_kind))


@pytest.mark.proves("export.assets.limit-code")
async def test_the_budgets_of_assets(shared_app: RunningApp) -> None:
    many = [asset("math_inline", str(number), png(1, 1)) for number in range(65)]
    await client.export(shared_app, markdown_request("x", assets=many[:64]))
    large = asset("mermaid", "large", png(2000, 2000))
    await client.export(shared_app, markdown_request("x", assets=[large]))
    heavy = [asset("mermaid", f"{n}", png(extra=b"x" * 2_800_000)) for n in range(3)]
    for assets, reason in (
        (many, "too_many"),
        ([asset("mermaid", "larger", png(2000, 2001))], "too_many_pixels"),
        (
            [asset("mermaid", f"{n}", png(2000, 2000)) for n in range(4)] + many[:1],
            "too_many_pixels",
        ),
        (heavy, "too_many_bytes"),
    ):
        status, code, details = await client.error_of(
            shared_app, markdown_request("x", assets=assets)
        )
        assert (status, code, details["reason"]) == (422, "EXPORT_ASSET_INVALID", reason)


def header(*values: int) -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBBBBB", *values))


def whole(*chunks: bytes) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks) + chunk(b"IEND", b"")


def pixels(raw: bytes) -> bytes:
    return chunk(b"IDAT", zlib.compress(raw))


PALETTE = chunk(b"PLTE", b"\0\0\0\xff\xff\xff")


@pytest.mark.parametrize(
    ("content", "is_whole"),
    [
        (whole(header(3, 1, 1, 0, 0, 0, 0), pixels(b"\0\xe0")), True),
        (whole(header(1, 1, 16, 6, 0, 0, 0), pixels(b"\0" + b"\1" * 8)), True),
        (whole(header(3, 1, 2, 3, 0, 0, 0), PALETTE, pixels(b"\0\x10")), True),
        (whole(header(3, 1, 2, 3, 0, 0, 0), pixels(b"\0\x10")), False),
        # Interlaced: 5 x 5 pixels lie in seven passes with eleven rows.
        (whole(header(5, 5, 8, 0, 0, 0, 1), pixels(b"\0" * 36)), True),
        (whole(header(5, 5, 8, 0, 0, 0, 1), pixels(b"\0" * 35)), False),
        (whole(header(1, 1, 8, 0, 0, 0, 1), pixels(b"\0\x10")), True),
        (whole(header(1, 1, 8, 0, 0, 0, 2), pixels(b"\0\x10")), False),
        (whole(header(1, 1, 4, 2, 0, 0, 0), pixels(b"\0\x10")), False),
        (whole(header(1, 1, 8, 5, 0, 0, 0), pixels(b"\0\x10")), False),
        (whole(header(0, 1, 8, 0, 0, 0, 0), pixels(b"\0")), False),
        (whole(header(1, 1, 8, 0, 0, 0, 0), pixels(b"\5\x10")), False),
        (whole(header(1, 1, 8, 0, 0, 0, 0), pixels(b"\0\x10\x10")), False),
        (whole(header(1, 1, 8, 0, 0, 0, 0), pixels(b"\0")), False),
        (whole(header(1, 1, 8, 0, 0, 0, 0), chunk(b"IDAT", b"\0\0")), False),
        (whole(header(1, 1, 8, 0, 0, 0, 0)), False),
        # A bomb: a megabyte of zeros for one pixel.
        (whole(header(1, 1, 8, 0, 0, 0, 0), pixels(b"\0" * 1_000_000)), False),
    ],
)
def test_which_pngs_are_whole(content: bytes, is_whole: bool) -> None:
    given = ExportAsset(
        kind="image", source_hash="0" * 64, png_base64=base64.b64encode(content).decode()
    )
    if not is_whole:
        with pytest.raises(ProjectError, match="EXPORT_ASSET_INVALID"):
            read_assets([given], UNLIMITED, StopSignal())
        return
    (picture,) = read_assets([given], UNLIMITED, StopSignal()).pictures.values()
    assert picture_type(picture) == "image/png"
