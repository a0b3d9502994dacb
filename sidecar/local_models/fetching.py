"""Fetches one file of a model: by ranges, from one source after the other, until its hash is right.

Beside the unfinished ``NAME.part`` lies ``NAME.part.json`` with what the source said of the file, so
that a later attempt goes on from the bytes that are there as long as the source offers the same file.
"""

import asyncio
import hashlib
import json
import os
import re
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from sidecar.kernel.errors import ProjectError
from sidecar.kernel.full_disk import is_full_disk
from sidecar.kernel.network_settings import is_this_machine
from sidecar.kernel.outbound_http import Exchange, OutboundError, OutboundHttp
from sidecar.local_models.catalogue import CatalogueModel, ModelFile
from sidecar.local_models.installed import sha256_of
from sidecar.local_models.sink import HashingSink

if TYPE_CHECKING:
    from hashlib import _Hash

ATTEMPTS: Final = 3
RETRY_SECONDS: Final = 0.5
# An attempt that brought less than this counts as one that failed.
WORTH_BYTES: Final = 64 * 1024
# No file of a model is larger; a source that goes on for ever is stopped here.
MOST_BYTES: Final = 32 << 30
_CONTENT_RANGE: Final = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_BUSY: Final = frozenset({408, 425, 429})
PACKAGE: Final = "package"

Told = Callable[[int], Awaitable[None]]
"""Is told how many bytes of the file are there by now; may take its time."""


class SourceFailedError(Exception):
    """A source doesn't give the file. ``reason`` is a word that is safe to show."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class WrongFileError(Exception):
    """A source gives another file than the catalogue means."""


class _AgainError(Exception):
    """An attempt broke off; another one may do better."""


@dataclass(frozen=True, slots=True)
class _Offer:
    """What a source said of the file that lies there in part."""

    url: str
    validator: str | None = None
    total: int | None = None
    sha256: str | None = None


class FileFetch:
    """The fetch of one file into *folder*."""

    def __init__(
        self,
        model: CatalogueModel,
        file: ModelFile,
        folder: Path,
        http: OutboundHttp,
        *,
        token: str | None = None,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        self._model = model
        self._file = file
        self._http = http
        self._token = token
        self._retry_seconds = retry_seconds
        self.target = folder / file.path
        self._part = self.target.with_name(self.target.name + ".part")
        self._offer_file = self.target.with_name(self.target.name + ".part.json")
        self._digest: tuple[int, _Hash] | None = None
        self._told: Told | None = None
        self.total = file.size

    @property
    def held(self) -> int:
        """How many bytes are there by now."""
        for path in (self.target, self._part):
            try:
                return path.stat().st_size
            except FileNotFoundError:
                continue
        return 0

    async def run(self, told: Told) -> str:
        """Fetch what is missing and return the file's SHA-256.

        Raises ``MODEL_DOWNLOAD_FAILED`` or ``MODEL_HASH_MISMATCH`` when no source gave the file, or
        ``DISK_SPACE_INSUFFICIENT``.
        """
        self._told = told
        self.target.parent.mkdir(parents=True, exist_ok=True)
        if self.target.exists():
            sha256 = await asyncio.to_thread(sha256_of, self.target)
            if self._file.sha256 in (None, sha256):
                return sha256
            self.target.unlink()
        failures: list[dict[str, str]] = []
        wrong = False
        for name, fetch in self._sources():
            try:
                return await fetch()
            except WrongFileError:
                wrong = True
                self._drop()
                failures.append({"source": name, "reason": "wrong_file"})
            except SourceFailedError as error:
                failures.append({"source": name, "reason": error.reason})
        details = {"file": self._file.path, "sources": failures}
        raise ProjectError(
            "MODEL_HASH_MISMATCH" if wrong else "MODEL_DOWNLOAD_FAILED", details=details
        )

    def _sources(self) -> list[tuple[str, Callable[[], Awaitable[str]]]]:
        found: list[tuple[str, Callable[[], Awaitable[str]]]] = []
        if self._file.package:
            found.append((PACKAGE, self._from_packages))
        for place, url in enumerate(self._model.urls(self._file)):
            # The token is for the hub, which comes first, and nobody's business at its mirrors.
            token = self._token if place == 0 and _is_private(url) else None

            def fetch(url: str = url, token: str | None = token) -> Awaitable[str]:
                return self._from_url(url, token)

            found.append((urlsplit(url).hostname or "", fetch))
        return found

    # -- packages ------------------------------------------------------------------------------

    async def _from_packages(self) -> str:
        parts = [_resource(name) for name in self._file.package]
        whole = [part for part in parts if part is not None]
        if len(whole) != len(parts):
            raise SourceFailedError("not_installed")
        await asyncio.to_thread(self._join, whole)
        return await self._finish(None)

    def _join(self, parts: list[Path]) -> None:
        self._drop()
        try:
            with self._part.open("wb") as output:
                for part in parts:
                    with part.open("rb") as source:
                        shutil.copyfileobj(source, output, 1 << 20)
        except OSError as error:
            raise _disk_error(error) from error

    # -- the network ---------------------------------------------------------------------------

    async def _from_url(self, url: str, token: str | None) -> str:
        failed = 0
        while True:
            before = self.held
            was_resumed = before > 0
            try:
                expected = await self._once(url, token)
                return await self._finish(expected)
            except WrongFileError:
                # What lay there may have been of another file; the source itself is asked once more.
                self._drop()
                if not was_resumed:
                    raise
            except (OutboundError, _AgainError) as error:
                if self.held - before < WORTH_BYTES:
                    failed += 1
                if failed >= ATTEMPTS:
                    raise SourceFailedError(_reason(error)) from error
                await asyncio.sleep(self._retry_seconds * 2**failed)

    async def _once(self, url: str, token: str | None) -> str | None:
        """Ask for what is missing; return the hash that the source announces."""
        offset, offer = self.held, self._read_offer()
        headers = self._range_headers(url, offset, offer)
        if not headers:
            offset = 0
        if offset and offset == self._file.size:
            return self._file.sha256
        async with self._http.stream(url, headers=headers, credential=token) as exchange:
            offset = self._begin(exchange, offset, offer)
            offer = _Offer(
                url, _validator(exchange), _total_of(exchange, offset), _announced_hash(exchange)
            )
            self.total = self._file.size if self._file.size is not None else offer.total
            if offer.total is not None and self.total != offer.total:
                raise WrongFileError
            self._write_offer(offer)
            await self._receive(exchange, offset)
        if self.total is not None and self.held < self.total:
            raise _AgainError("truncated")
        return offer.sha256

    def _range_headers(self, url: str, offset: int, offer: _Offer | None) -> dict[str, str]:
        if not offset or offer is None:
            return {}
        same_source = offer.url == url
        if same_source and offer.validator:
            return {"Range": f"bytes={offset}-", "If-Range": offer.validator}
        # Without the source's own word, only the hash can tell whether the rest belongs to it.
        return {"Range": f"bytes={offset}-"} if self._file.sha256 else {}

    def _begin(self, exchange: Exchange, offset: int, offer: _Offer | None) -> int:
        """Return where the body begins in the file."""
        status = exchange.response.status_code
        if status == 200:
            return 0
        if status == 206 and offset:
            match = _CONTENT_RANGE.fullmatch(exchange.response.headers.get("content-range", ""))
            known = offer.total if offer else None
            if match and int(match[1]) == offset and match[2] in ("*", str(known), str(self.total)):
                return offset
            self._drop()
            raise _AgainError("changed")
        if status == 416 and offset:
            self._drop()
            raise _AgainError("changed")
        if status >= 500 or status in _BUSY:
            raise _AgainError(f"http_{status}")
        raise SourceFailedError(f"http_{status}")

    async def _receive(self, exchange: Exchange, offset: int) -> None:
        digest = self._digest[1] if self._digest and self._digest[0] == offset else None
        if offset == 0:
            digest = hashlib.sha256()
        self._digest = None
        limit = self.total if self.total is not None else MOST_BYTES
        try:
            with self._part.open("r+b" if offset else "wb", buffering=0) as output:
                if offset:
                    output.seek(offset)
                    output.truncate()
                sink = HashingSink(output, digest)
                try:
                    async for chunk in exchange.response.aiter_raw():
                        offset += len(chunk)
                        if offset > limit:
                            raise WrongFileError
                        await sink.put(chunk)
                        if self._told is not None:
                            await self._told(offset)
                finally:
                    await sink.close()
        except OSError as error:
            raise _disk_error(error) from error
        if digest is not None:
            self._digest = (offset, digest)

    async def _finish(self, announced: str | None) -> str:
        """Check the whole file, give it its name, and return its hash."""
        size = self.held
        if self._digest is not None and self._digest[0] == size:
            sha256 = self._digest[1].hexdigest()
        else:
            sha256 = await asyncio.to_thread(sha256_of, self._part)
        expected = self._file.sha256 or announced
        if (expected and sha256 != expected) or self._file.size not in (None, size):
            raise WrongFileError
        await asyncio.to_thread(self._place)
        if self._told is not None:
            await self._told(size)
        return sha256

    def _place(self) -> None:
        try:
            with self._part.open("rb+") as file:
                os.fsync(file.fileno())
            self._part.replace(self.target)
        except OSError as error:
            raise _disk_error(error) from error
        self._offer_file.unlink(missing_ok=True)

    # -- what lies there in part -------------------------------------------------------------------

    def _read_offer(self) -> _Offer | None:
        try:
            stored: Any = json.loads(self._offer_file.read_text(encoding="utf-8"))
            return _Offer(**stored)
        except (OSError, ValueError, TypeError):
            # Nothing was begun, or it was cut off while it was written: the file is fetched anew.
            return None

    def _write_offer(self, offer: _Offer) -> None:
        try:
            self._offer_file.write_text(json.dumps(asdict(offer)), encoding="utf-8")
        except OSError as error:
            raise _disk_error(error) from error

    def _drop(self) -> None:
        self._digest = None
        self._part.unlink(missing_ok=True)
        self._offer_file.unlink(missing_ok=True)


def _validator(exchange: Exchange) -> str | None:
    headers = exchange.response.headers
    etag = headers.get("etag")
    if etag and not etag.startswith("W/"):
        return str(etag)
    modified = headers.get("last-modified")
    return str(modified) if modified else None


def _total_of(exchange: Exchange, offset: int) -> int | None:
    headers = exchange.response.headers
    match = _CONTENT_RANGE.fullmatch(headers.get("content-range", ""))
    if offset and match:
        return None if match[2] == "*" else int(match[2])
    length = headers.get("content-length", "")
    return int(length) if length.isascii() and length.isdigit() else None


def _announced_hash(exchange: Exchange) -> str | None:
    """Return the SHA-256 that a model hub gives a large file as its entity tag."""
    value = (exchange.header("x-linked-etag") or "").removeprefix("W/").strip('"').lower()
    return value if _SHA256.fullmatch(value) else None


def _resource(name: str) -> Path | None:
    """Return a file inside an installed package, None if it isn't there. Imports nothing."""
    package, _, rest = name.partition("/")
    try:
        spec = util.find_spec(package)
    except (ImportError, ValueError):
        return None
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / rest
        if path.is_file():
            return path
    return None


def _reason(error: Exception) -> str:
    return error.reason if isinstance(error, OutboundError) else str(error)


def _disk_error(error: OSError) -> Exception:
    return ProjectError("DISK_SPACE_INSUFFICIENT") if is_full_disk(error) else error


def _is_private(url: str) -> bool:
    return urlsplit(url).scheme == "https" or is_this_machine(url)
