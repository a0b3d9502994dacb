"""The worker process that reads attachments: ``sidecar worker documents``.

The files come from anywhere, so what takes them apart has no secret, no database, and bounds: of the
time (the server's), of what is unpacked, and of the memory.
"""

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from sidecar.documents.libreoffice import find_soffice, to_pptx
from sidecar.documents.office_package import OfficePackage
from sidecar.documents.pictures import data_uri
from sidecar.documents.refusal import Refused
from sidecar.documents.text_output import TextOutput
from sidecar.kernel.processes import kill_descendants
from sidecar.kernel.workers.process import (
    OUT_OF_MEMORY,
    Task,
    WorkCancelled,
    WorkerServer,
    WorkFailed,
)

MOST_MEMORY: Final = 1536 * 1024**2
_LOOK_SECONDS: Final = 0.05
# Elements are nested at most 256 deep, and each level is a few calls.
_RECURSION_LIMIT: Final = 6_000

_OLE_MAGIC: Final = bytes.fromhex("d0cf11e0a1b11ae1")
_OLE_PRESENTATION: Final = "PowerPoint Document".encode("utf-16-le")
_OLE_ENCRYPTED: Final = "EncryptedSummary".encode("utf-16-le")

Check = Callable[[], None]


def text(params: dict[str, Any], task: Task) -> dict[str, Any]:
    """Take the text out of the document ``path`` of the ``kind`` docx, pptx or ppt.

    ``limit`` is the most characters; ``folder`` is an empty folder for a conversion. The result has
    ``text``, ``truncated``, ``pictures`` and ``objects``, of which there were so many.
    """
    path, output = Path(params["path"]), TextOutput(params["limit"])
    kind = params["kind"]
    if kind == "ppt":
        path, kind = _converted(path, Path(params["folder"]), task.check), "pptx"
    package = OfficePackage(path)
    try:
        left_out = _READERS[kind](package, output, task.check)
    finally:
        package.close()
    if not output.text.strip():
        raise Refused("no_text")
    return {
        "text": output.text,
        "truncated": output.truncated,
        "pictures": left_out.pictures,
        "objects": left_out.objects,
    }


def _read_docx(package: OfficePackage, output: TextOutput, check: Check) -> Any:
    from sidecar.documents.docx_text import DocxText  # noqa: PLC0415 - one of the two is enough

    document = DocxText(package, check)
    document.write(output)
    return document.left_out


def _read_pptx(package: OfficePackage, output: TextOutput, check: Check) -> Any:
    from sidecar.documents.pptx_text import PptxText  # noqa: PLC0415

    presentation = PptxText(package, check)
    presentation.write(output)
    if not presentation.has_text:
        raise Refused("no_text")
    return presentation.left_out


_READERS: Final = {"docx": _read_docx, "pptx": _read_pptx}


def _converted(path: Path, folder: Path, check: Check) -> Path:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Refused("missing") from error
    if not content.startswith(_OLE_MAGIC) or _OLE_PRESENTATION not in content:
        raise Refused("wrong_type")
    if _OLE_ENCRYPTED in content:
        raise Refused("encrypted")
    soffice = find_soffice()
    if soffice is None:
        raise Refused("converter_missing")
    return to_pptx(path, folder, soffice, check)


def picture(params: dict[str, Any], task: Task) -> dict[str, Any]:
    """Return the picture ``path`` as the data URI ``uri`` of at most ``max_bytes`` bytes before encoding."""
    return {"uri": data_uri(Path(params["path"]), params["max_bytes"], task.check)}


def _guarded(
    method: Callable[[dict[str, Any], Task], dict[str, Any]], working: threading.Event
) -> Any:
    def run(params: dict[str, Any], task: Task) -> dict[str, Any]:
        working.set()
        try:
            return method(params, task)
        except Refused as error:
            raise WorkFailed("CHAT_ATTACHMENT_FAILED", reason=error.reason) from error
        except (WorkCancelled, MemoryError):
            raise
        except RecursionError:
            raise WorkFailed("CHAT_ATTACHMENT_FAILED", reason="too_complex") from None
        except Exception as error:  # noqa: BLE001 - what no library expected of a file, the file is to blame for
            # What a library says may quote the document, which no log may hold.
            where = traceback.extract_tb(error.__traceback__)[-1]
            sys.stderr.write(f"{type(error).__name__} at {where.filename}:{where.lineno}\n")
            raise WorkFailed("CHAT_ATTACHMENT_FAILED", reason="damaged") from None
        finally:
            working.clear()

    return run


def _watch_memory(working: threading.Event) -> None:
    """End the process once it holds more memory than a file may need, whatever it is doing."""
    import psutil  # noqa: PLC0415 - in the worker alone

    own = psutil.Process()
    while working.wait() and own.memory_info().rss < MOST_MEMORY:
        time.sleep(_LOOK_SECONDS)
    kill_descendants()
    os._exit(OUT_OF_MEMORY)


def main() -> None:
    """Serve until stdin ends."""
    sys.setrecursionlimit(_RECURSION_LIMIT)
    working = threading.Event()
    threading.Thread(target=_watch_memory, args=(working,), name="memory", daemon=True).start()
    methods = {"text": _guarded(text, working), "picture": _guarded(picture, working)}
    WorkerServer(methods, at_end=kill_descendants).run()
