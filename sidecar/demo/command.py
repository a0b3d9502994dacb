"""``sidecar demo``: a recording becomes a searchable note and a document, before your eyes."""

import json
import locale as system_locale
import os
import sys
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

from host_bridge.errors import SidecarError
from sidecar.demo.ask import Asking, AskReport, Audience, ModelServer
from sidecar.demo.progress import cells, pad
from sidecar.demo.walk import DemoFailed, Folders, Report, Walk
from sidecar.kernel.catalogue import Locale, parse_locale, set_default_locale, text

DEFAULT_FOLDER: Final = "demo-output"
RECORDINGS: Final = {"en": "en-jfk.flac", "zh": "zh-lecture.flac"}


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """The command line of ``demo``."""

    recording: Path | None
    language: str | None
    data_dir: Path | None
    models_dirs: tuple[Path, ...]
    as_json: bool


def run_demo(options: DemoOptions) -> int:
    """Run the demo and return the exit status: 0 if it made everything, 1 if it couldn't."""
    locale = terminal_locale()
    set_default_locale(locale)
    try:
        walk = Walk(
            _recording(options),
            options.language,
            _folders(options.data_dir or Path(DEFAULT_FOLDER)),
            options.models_dirs,
        )
        report = walk.run(locale)
    except (DemoFailed, SidecarError) as failure:
        return _fail(str(failure), as_json=options.as_json)
    if options.as_json:
        print(json.dumps(report.to_json(), ensure_ascii=False, indent=2))
    else:
        print(render(report))
    return 0


@dataclass(frozen=True, slots=True)
class AskOptions:
    """The command line of ``demo --ask``."""

    question: str
    base_url: str | None
    model: str | None
    calls_tools: bool
    vault: Path | None
    demo: DemoOptions


def run_ask(options: AskOptions) -> int:
    """Ask the notes of a folder, by default those that the demo made; return the exit status."""
    locale = terminal_locale()
    set_default_locale(locale)
    demo = options.demo
    server = ModelServer.named(options.base_url, options.model, calls_tools=options.calls_tools)
    try:
        folders = _folders(demo.data_dir or Path(DEFAULT_FOLDER))
        vault = options.vault.expanduser().absolute() if options.vault else folders.vault
        if not options.vault and not any(vault.rglob("*.md")):
            recording = _recording(demo)
            Walk(recording, demo.language, folders, demo.models_dirs).run(locale)
        audience = Audience() if demo.as_json else _Terminal()
        asking = Asking(options.question, folders, vault, demo.models_dirs, server, audience)
        report = asking.run(locale)
    except (DemoFailed, SidecarError) as failure:
        return _fail(str(failure), as_json=demo.as_json)
    if demo.as_json:
        print(json.dumps(report.to_json(), ensure_ascii=False, indent=2))
    else:
        print(render_answer(report))
    return 1 if report.error else 0


class _Terminal(Audience):
    """Shows what is found and said as it comes."""

    def found(self, report: AskReport) -> None:
        """List the passages."""
        print(f"\n{text('demo.heading.hits', None, count=len(report.hits))}")
        for number, hit in enumerate(report.hits, 1):
            print(f"  {number}. {_place(hit)}: {' '.join(hit['snippet'].split())}")

    def begins(self, report: AskReport, *, with_tools: bool) -> None:
        """Say who answers."""
        if not with_tools:
            print(f"\n{text('demo.without_tools')}")
        heading = text("demo.heading.answer", None, model=report.model, server=report.base_url)
        print(f"\n{heading}\n")

    def says(self, piece: str) -> None:
        """Pass it on at once."""
        print(piece, end="", flush=True)


def render_answer(report: AskReport) -> str:
    """Return what follows the answer on a terminal: its sources, or why there is none."""
    lines = ["" if report.answer is None else "\n"]
    if report.error:
        lines.append(text("demo.failed", None, reason=report.error))
    elif report.base_url is None:
        lines.append(text("demo.no_model_server"))
    if report.sources:
        lines.append(text("demo.heading.sources"))
        lines += [f"  [{source['number']}] {_place(source)}" for source in report.sources]
    if report.searches:
        words = " · ".join(report.searches)
        lines.append(text("demo.searched", None, words=words))
    return "\n".join(lines)


def _place(found: dict[str, Any]) -> str:
    where = f" [{clock(found['start_time'])}]" if found.get("start_time") is not None else ""
    headings = "".join(f" › {heading}" for heading in found["heading_path"])
    return f"{found['file_path']}{headings}{where}"


def terminal_locale() -> Locale:
    """Return the language of the terminal, as far as the environment tells."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if os.environ.get(name):
            return parse_locale(os.environ[name]) or "en"
    return parse_locale(system_locale.getlocale()[0]) or "en"


def _recording(options: DemoOptions) -> Path:
    if options.recording is None:
        name = RECORDINGS.get(options.language or "en", RECORDINGS["en"])
        return Path(str(resources.files("sidecar.demo") / "recordings" / name))
    path = options.recording.expanduser().absolute()
    if not path.is_file():
        raise DemoFailed(text("demo.recording_missing", None, path=path))
    return path


def _folders(root: Path) -> Folders:
    folders = Folders(root.expanduser().absolute())
    try:
        folders.vault.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise DemoFailed(text("demo.folder_unusable", None, path=folders.root)) from None
    return folders


def _fail(reason: str, *, as_json: bool) -> int:
    if as_json:
        print(json.dumps({"error": reason}, ensure_ascii=False, indent=2))
    sys.stderr.write(text("demo.failed", None, reason=reason) + "\n")
    return 1


def render(report: Report) -> str:
    """Return the report for a terminal."""
    hit = report.hit
    where = f" [{clock(hit['start_time'])}]" if hit.get("start_time") is not None else ""
    lines = ["", text("demo.heading.transcript", None, language=report.language)]
    lines += [
        f"  {clock(segment['start_time'])} – {clock(segment['end_time'])}  {segment['text'].strip()}"
        for segment in report.transcript
    ]
    sections = {
        "note": report.note["path"],
        "hit": f"{hit['title']}{where}: {' '.join(hit['snippet'].split())}",
        "document": f"{report.document['path']} ({report.document['bytes']:,} bytes)",
        "seconds": " · ".join(f"{name} {value:.2f}" for name, value in report.seconds.items()),
    }
    headings = {name: text(f"demo.heading.{name}") for name in sections}
    width = max(map(cells, headings.values())) + 2
    lines.append("")
    lines += [f"{pad(headings[name], width)}{content}" for name, content in sections.items()]
    return "\n".join(lines)


def clock(seconds: float) -> str:
    """Return a position in a recording as minutes and seconds."""
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes):02d}:{rest:04.1f}"
