"""Encode a file upload as multipart/form-data."""

import os
from collections.abc import Mapping
from pathlib import Path

from host_bridge.protocol import new_token


def encode_upload(
    file: Path | bytes,
    *,
    filename: str,
    field: str = "file",
    media_type: str = "application/octet-stream",
    fields: Mapping[str, str] | None = None,
) -> tuple[str, bytes]:
    """Give the Content-Type and the body of a form with one file and further text fields."""
    boundary = f"sidecar-{new_token()}"
    parts = [
        _part(boundary, f'name="{_quoted(name)}"', value.encode("utf-8"))
        for name, value in (fields or {}).items()
    ]
    content = file if isinstance(file, bytes) else Path(file).read_bytes()
    disposition = f'name="{_quoted(field)}"; filename="{_quoted(os.fspath(filename))}"'
    parts.append(_part(boundary, disposition, content, media_type))
    body = b"".join(parts) + f"--{boundary}--\r\n".encode("ascii")
    return f"multipart/form-data; boundary={boundary}", body


def _part(boundary: str, disposition: str, content: bytes, media_type: str | None = None) -> bytes:
    head = f"--{boundary}\r\nContent-Disposition: form-data; {disposition}\r\n"
    if media_type is not None:
        head += f"Content-Type: {media_type}\r\n"
    return head.encode("utf-8") + b"\r\n" + content + b"\r\n"


def _quoted(text: str) -> str:
    """As browsers do it: a quote or a line break would end the name early."""
    return text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
