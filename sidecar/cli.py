"""The command line: ``serve``, ``demo``, ``doctor``, ``runtime``, ``openapi``, ``worker``, ``--version``."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from sidecar.version import VERSION
from sidecar.workers import WORKERS, run_worker


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sidecar",
        description="The local engine of a notes app. A host starts it with `serve`.",
    )
    parser.add_argument("--version", action="version", version=VERSION)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_serve(
        commands.add_parser("serve", help="serve the API; a host writes one JSON line to stdin")
    )
    _add_demo(commands.add_parser("demo", help="turn a recording into a note and a document"))
    _add_doctor(commands.add_parser("doctor", help="say what is installed and usable"))
    runtime = commands.add_parser("runtime", help="install, check or remove the torch runtime")
    if "runtime" in words:
        # Its options are the installer's, which no other command should have to load.
        _add_runtime(runtime)
    openapi = commands.add_parser("openapi", help="print the OpenAPI document")
    openapi.set_defaults(run=_openapi)
    worker = commands.add_parser("worker", help="serve as a worker process; started by `serve`")
    worker.add_argument("name", choices=sorted(WORKERS))
    worker.set_defaults(run=_worker)
    return parser


def _add_serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port", type=int, default=0, help="port on 127.0.0.1 (default: a free one)"
    )
    parser.add_argument("--data-dir", type=Path, help="app data directory (default: APP_DATA_DIR)")
    _add_models_dir(parser)
    parser.set_defaults(run=_serve)


def _add_models_dir(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--models-dir",
        type=Path,
        action="append",
        default=[],
        help="a further folder with model weights; may be repeated",
    )


def _add_demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "recording", nargs="?", type=Path, help="an audio or video file of your own"
    )
    parser.add_argument(
        "--language", help="spoken language, e.g. en or zh; zh takes a bundled lecture"
    )
    parser.add_argument("--data-dir", type=Path, help="where the demo keeps its files")
    parser.add_argument("--json", action="store_true", help="print one JSON document at the end")
    asking = parser.add_argument_group("asking the notes")
    asking.add_argument("--ask", metavar="QUESTION", help="search the notes, and have it answered")
    asking.add_argument(
        "--base-url",
        metavar="URL",
        help="an OpenAI-compatible server that answers (default: OPENAI_BASE_URL, with OPENAI_API_KEY)",
    )
    asking.add_argument("--model", help="its model (default: the first that it lists)")
    asking.add_argument(
        "--no-tools",
        action="store_true",
        help="send along what the search found, for a model that can't search by itself",
    )
    asking.add_argument("--vault", type=Path, help="a folder with notes (default: the demo's own)")
    _add_models_dir(parser)
    parser.set_defaults(run=_demo)


def _add_doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data-dir", type=Path, help="app data directory (default: APP_DATA_DIR)")
    parser.add_argument("--locale", default="en", help="en or zh-CN")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    _add_models_dir(parser)
    parser.set_defaults(run=_doctor)


def _add_runtime(parser: argparse.ArgumentParser) -> None:
    from cuda_installer import cli as installer  # noqa: PLC0415

    installer.add_commands(parser)
    parser.set_defaults(run=installer.run)


def _serve(arguments: argparse.Namespace) -> NoReturn:
    from sidecar.serve import ServeOptions, serve  # noqa: PLC0415 - only for this command

    serve(ServeOptions(arguments.port, arguments.data_dir, _absolute(arguments.models_dir)))


def _demo(arguments: argparse.Namespace) -> int:
    from sidecar.demo.command import (  # noqa: PLC0415
        AskOptions,
        DemoOptions,
        run_ask,
        run_demo,
    )

    options = DemoOptions(
        recording=arguments.recording,
        language=arguments.language,
        data_dir=arguments.data_dir,
        models_dirs=_absolute(arguments.models_dir),
        as_json=arguments.json,
    )
    if arguments.ask is None:
        return run_demo(options)
    return run_ask(
        AskOptions(
            arguments.ask,
            arguments.base_url,
            arguments.model,
            calls_tools=not arguments.no_tools,
            vault=arguments.vault,
            demo=options,
        )
    )


def _doctor(arguments: argparse.Namespace) -> int:
    from sidecar.doctor.command import run_doctor  # noqa: PLC0415

    return run_doctor(
        data_dir=arguments.data_dir,
        models_dirs=_absolute(arguments.models_dir),
        locale=arguments.locale,
        as_json=arguments.json,
    )


def _openapi(_: argparse.Namespace) -> int:
    from sidecar.app import offline_openapi  # noqa: PLC0415

    print(json.dumps(offline_openapi(), ensure_ascii=False, indent=2))
    return 0


def _worker(arguments: argparse.Namespace) -> int:
    run_worker(arguments.name)
    return 0


def _absolute(paths: Sequence[Path]) -> tuple[Path, ...]:
    return tuple(path.absolute() for path in paths)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status."""
    for stream in (sys.stdout, sys.stderr):
        # A console of another code page must not break on a Chinese transcript.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="replace")
    words = sys.argv[1:] if arguments is None else arguments
    parsed = _parser(words).parse_args(words)
    try:
        return int(parsed.run(parsed) or 0)
    except BrokenPipeError:
        # Whoever read the output has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
