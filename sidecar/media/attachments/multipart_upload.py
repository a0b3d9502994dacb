"""Takes the one file out of a multipart body while it arrives, straight to disk.

Only a buffer of the file is ever in memory. The temporary file is gone when the context ends, unless
it was moved away; what a killed process leaves lies in the folder that is emptied at each start.
"""

import asyncio
import contextlib
import hashlib
import os
import secrets
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sidecar.kernel.errors import ProjectError
from sidecar.kernel.full_disk import is_full_disk
from sidecar.media.attachments.file_names import safe_file_name
from sidecar.media.input_errors import invalid

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartParser

FIELD: Final = "file"
BUFFER_BYTES: Final = 512 * 1024


@dataclass(frozen=True, slots=True)
class ReceivedFile:
    """A whole file in its temporary place. ``sha256`` is in lower-case hex."""

    path: Path
    file_name: str
    size: int
    sha256: str


@asynccontextmanager
async def receive_file(
    chunks: AsyncIterator[bytes], content_type: str, folder: Path, limit: int
) -> AsyncGenerator[ReceivedFile, None]:
    """Read the body *chunks* to its end and give the file in its part ``file``.

    Raises ``VALIDATION_ERROR`` for a body that isn't multipart or has no such file,
    ``ATTACHMENT_EMPTY``, ``ATTACHMENT_TOO_LARGE`` for more than *limit* bytes, or
    ``DISK_SPACE_INSUFFICIENT``.
    """
    path = folder / f"upload-{secrets.token_hex(16)}"
    try:
        receiver = _Receiver(content_type, path, limit)
        try:
            async for chunk in chunks:
                await receiver.feed(chunk)
            received = await receiver.finish()
        except OSError as error:
            raise _of_disk(error) from error
        finally:
            await asyncio.to_thread(receiver.close)
        yield received
    finally:
        await asyncio.to_thread(path.unlink, missing_ok=True)


def _of_disk(error: OSError) -> Exception:
    return ProjectError("DISK_SPACE_INSUFFICIENT") if is_full_disk(error) else error


class _Receiver:
    """Parses one body and writes its file."""

    def __init__(self, content_type: str, path: Path, limit: int) -> None:
        self._parser = _make_parser(content_type, self)
        self._path = path
        self._limit = limit
        self._file = path.open("wb")
        self._digest = hashlib.sha256()
        self._buffer = bytearray()
        self._size = 0
        self._name: str | None = None
        self._in_file = False
        self._header = bytearray()
        self._value = bytearray()
        self._headers: dict[str, str] = {}
        self._ended = False

    async def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the body."""
        from python_multipart.exceptions import FormParserError  # noqa: PLC0415 - not needed before ready

        try:
            self._parser.write(chunk)
        except FormParserError:
            raise invalid("The body is not valid multipart/form-data.", "body") from None
        if len(self._buffer) >= BUFFER_BYTES:
            await self._flush()

    async def finish(self) -> ReceivedFile:
        """Make the file durable and return it."""
        if not self._ended:
            raise invalid("The multipart body ends early.", "body")
        if self._name is None:
            raise invalid("A file is required in the part named file.", "body", FIELD)
        if self._size > self._limit:
            raise ProjectError("ATTACHMENT_TOO_LARGE", details={"limit_bytes": self._limit})
        if self._size == 0:
            raise ProjectError("ATTACHMENT_EMPTY")
        await self._flush()
        await asyncio.to_thread(self._make_durable)
        return ReceivedFile(self._path, self._name, self._size, self._digest.hexdigest())

    def close(self) -> None:
        """Close the file; what can't be written any more is given up."""
        with contextlib.suppress(OSError):
            self._file.close()

    async def _flush(self) -> None:
        data, self._buffer = bytes(self._buffer), bytearray()
        await asyncio.to_thread(self._write, data)

    def _write(self, data: bytes) -> None:
        self._digest.update(data)
        self._file.write(data)

    def _make_durable(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    # -- what the parser calls -----------------------------------------------------------------

    def on_part_begin(self) -> None:
        self._headers = {}

    def on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def on_header_end(self) -> None:
        self._headers[self._header.decode("latin-1").lower()] = self._value.decode("latin-1")
        self._header, self._value = bytearray(), bytearray()

    def on_headers_finished(self) -> None:
        from python_multipart.multipart import parse_options_header  # noqa: PLC0415

        _, options = parse_options_header(self._headers.get("content-disposition", ""))
        self._in_file = options.get(b"name") == FIELD.encode() and b"filename" in options
        if self._in_file:
            if self._name is not None:
                raise invalid("Only one file can be sent at a time.", "body", FIELD)
            self._name = safe_file_name(_text(options[b"filename"]))

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self._in_file:
            self._size += end - start
            # What is over the limit is read to the end, since the client is still sending, and dropped.
            if self._size <= self._limit:
                self._buffer += data[start:end]

    def on_part_end(self) -> None:
        self._in_file = False

    def on_end(self) -> None:
        self._ended = True


def _text(name: bytes) -> str:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        return name.decode("latin-1")


def _make_parser(content_type: str, receiver: _Receiver) -> "MultipartParser":
    from python_multipart.exceptions import FormParserError  # noqa: PLC0415
    from python_multipart.multipart import MultipartParser, parse_options_header  # noqa: PLC0415

    media_type, options = parse_options_header(content_type)
    boundary = options.get(b"boundary")
    if media_type != b"multipart/form-data" or not boundary:
        raise invalid("The body has to be multipart/form-data with a file.", "body")
    try:
        return MultipartParser(
            boundary,
            {
                "on_part_begin": receiver.on_part_begin,
                "on_header_field": receiver.on_header_field,
                "on_header_value": receiver.on_header_value,
                "on_header_end": receiver.on_header_end,
                "on_headers_finished": receiver.on_headers_finished,
                "on_part_data": receiver.on_part_data,
                "on_part_end": receiver.on_part_end,
                "on_end": receiver.on_end,
            },
        )
    except FormParserError:
        raise invalid("The multipart boundary is too long.", "body") from None
