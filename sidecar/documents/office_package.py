"""Reads the parts of a DOCX or PPTX file without trusting it.

Nothing is taken on trust: sizes are counted while a part is unpacked, whatever the archive says of
them; document types, and so entities, are refused; nothing outside the file is ever opened.
"""

import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final
from urllib.parse import unquote

from sidecar.documents.refusal import Refused
from sidecar.documents.xml_elements import Element, attribute, name_of

MEBIBYTE: Final = 1024 * 1024
MOST_UNPACKED: Final = 256 * MEBIBYTE
"""Bytes that may be unpacked of one file in all."""
MOST_IN_MEMORY: Final = 48 * MEBIBYTE
"""Bytes of a part that is read as a whole."""
MOST_ENTRIES: Final = 20_000

_OLE_MAGIC: Final = bytes.fromhex("d0cf11e0a1b11ae1")
_ENCRYPTED: Final = "EncryptedPackage".encode("utf-16-le")
_ENCRYPTED_FLAG: Final = 0x1
_COMPRESSIONS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# libxml2 stops at 256 levels and at 10 million characters of one text, unless told otherwise.
_PARSER: Final = {
    "resolve_entities": False,
    "load_dtd": False,
    "no_network": True,
    "huge_tree": False,
    "remove_comments": True,
    "remove_pis": True,
}
_LIMIT_WORDS: Final = ("depth", "huge", "limit", "amplification", "too long", "too large")


@dataclass(frozen=True, slots=True)
class Relationship:
    """What one part says of another, or of something outside. ``kind`` is the last word of its type."""

    kind: str
    target: str
    external: bool


class OfficePackage:
    """An open file of Office Open XML. Every method may raise :class:`Refused`."""

    def __init__(self, path: Path) -> None:
        self._archive = _open(path)
        entries = self._archive.infolist()
        if len(entries) > MOST_ENTRIES:
            raise Refused("too_large")
        if any(entry.flag_bits & _ENCRYPTED_FLAG for entry in entries):
            raise Refused("encrypted")
        # The names of parts don't tell capitals from small letters.
        self._entries = {entry.filename.lower().lstrip("/"): entry for entry in entries}
        self._left = MOST_UNPACKED

    def close(self) -> None:
        """Close the file."""
        self._archive.close()

    def __contains__(self, part: str) -> bool:
        return part.lower() in self._entries

    def main_part(self, kind: str) -> str:
        """Return the name of the part that the file is about; *kind* is what is expected of its name."""
        for relationship in self.relationships("").values():
            if relationship.kind == "officeDocument" and relationship.target in self:
                if kind not in relationship.target:
                    raise Refused("wrong_type")
                return relationship.target
        raise Refused("damaged")

    def relationships(self, part: str) -> dict[str, Relationship]:
        """Return the relationships of *part* ("": of the file) by their ids."""
        folder, name = posixpath.split(part)
        root = self.xml(posixpath.join(folder, "_rels", f"{name}.rels"))
        if root is None:
            return {}
        found: dict[str, Relationship] = {}
        for element in root:
            target = attribute(element, "Target")
            external = attribute(element, "TargetMode") == "External"
            if not external:
                target = posixpath.normpath(posixpath.join("/", folder, unquote(target)))[1:]
            kind = attribute(element, "Type").rpartition("/")[2]
            found[attribute(element, "Id")] = Relationship(kind, target, external)
        return found

    def related(self, part: str, kind: str) -> str | None:
        """Return the part of *kind* that *part* refers to, None if there is none in the file."""
        for relationship in self.relationships(part).values():
            if relationship.kind == kind and not relationship.external:
                return relationship.target if relationship.target in self else None
        return None

    def xml(self, part: str) -> Element | None:
        """Return the root element of a part, None if the file has no such part."""
        from lxml import etree  # noqa: PLC0415 - in the worker alone

        if part not in self:
            return None
        with self._reading(part, MOST_IN_MEMORY) as stream:
            root = etree.parse(stream, etree.XMLParser(**_PARSER)).getroot()
        _refuse_document_type(root)
        return root

    def stream(self, part: str, container: str, names: tuple[str, ...]) -> Iterator[Element]:
        """Yield, one after the other, the children of *container* that have one of *names*.

        Each is forgotten when the next one is asked for, so a long part needs little memory.
        """
        from lxml import etree  # noqa: PLC0415

        if part not in self:
            raise Refused("damaged")
        tags = [f"{{*}}{name}" for name in names]
        first = True
        with self._reading(part, MOST_UNPACKED) as stream:
            for _, element in etree.iterparse(stream, events=("end",), tag=tags, **_PARSER):
                if first:
                    _refuse_document_type(element)
                    first = False
                parent = element.getparent()
                if parent is None or name_of(parent) != container:
                    continue
                yield element
                element.clear()
                while element.getprevious() is not None:
                    del parent[0]

    @contextmanager
    def _reading(self, part: str, most: int) -> Iterator["_Counted"]:
        from lxml import etree  # noqa: PLC0415

        entry = self._entries[part.lower()]
        if entry.compress_type not in _COMPRESSIONS:
            raise Refused("damaged")
        counted: _Counted | None = None
        try:
            with self._archive.open(entry) as stream:
                counted = _Counted(stream, min(most, self._left))
                yield counted
        except etree.XMLSyntaxError as error:
            over = any(word in str(error).lower() for word in _LIMIT_WORDS)
            raise Refused("too_complex" if over else "damaged") from error
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
            raise Refused("damaged") from error
        except (NotImplementedError, RuntimeError) as error:
            raise Refused("damaged") from error
        finally:
            if counted is not None:
                self._left -= counted.taken


class _Counted:
    """What an XML parser reads from, until there is more than allowed."""

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self._stream = stream
        self._most = most
        self.taken = 0

    def read(self, size: int = -1) -> bytes:
        content = self._stream.read(size if 0 < size < MEBIBYTE else MEBIBYTE)
        self.taken += len(content)
        if self.taken > self._most:
            raise Refused("too_large")
        return content


def _refuse_document_type(element: Element) -> None:
    if element.getroottree().docinfo.internalDTD is not None:
        raise Refused("damaged")


def _open(path: Path) -> zipfile.ZipFile:
    try:
        with path.open("rb") as file:
            head = file.read(len(_OLE_MAGIC))
        if head == _OLE_MAGIC:
            # A document with a password is wrapped into the older container.
            raise Refused("encrypted" if _ENCRYPTED in path.read_bytes() else "wrong_type")
        return zipfile.ZipFile(path)
    except FileNotFoundError as error:
        raise Refused("missing") from error
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError) as error:
        raise Refused("damaged") from error
