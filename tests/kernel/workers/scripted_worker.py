"""A worker that behaves badly on command; the method of a request says how."""

import json
import os
import signal
import subprocess
import sys
import threading
from typing import Any

FOR_EVER = "import threading; threading.Event().wait()"


def send(**message: Any) -> None:
    """Write one message."""
    print(json.dumps(message), flush=True)  # noqa: T201 - its protocol


def _child(*, own_session: bool) -> int:
    ignore = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + FOR_EVER
    child = subprocess.Popen(
        [sys.executable, "-c", ignore], stdin=subprocess.DEVNULL, start_new_session=own_session
    )
    return child.pid


def serve(request: dict[str, Any]) -> None:  # noqa: C901 - one list of misdeeds
    """Behave as asked."""
    number, method = request["id"], request["method"]
    match method:
        case "echo":
            send(type="progress", id=number, data={"step": 1})
            send(type="result", id=number, data=request["params"])
        case "pid":
            send(type="result", id=number, data={"pid": os.getpid()})
        case "fail":
            send(type="error", id=number, code="STATE_CONFLICT", params={})
        case "crash":
            print("last words", file=sys.stderr, flush=True)  # noqa: T201
            os._exit(3)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stray":
            print("a library prints this\n\n{broken", flush=True)  # noqa: T201
            print("\x00\xff" * 10, flush=True)  # noqa: T201
            send(type="result", id=number + 1000, data={"of": "nobody"})
            send(type="result", id=number, data={"ok": True})
        case "shapes":
            for text in ("[]", "5", '"text"', "null", '{"type": "progress"}'):
                print(text, flush=True)  # noqa: T201
            send(type="result", id=number, data={"ok": True})
        case "long":
            send(type="result", id=number, data={"text": "x" * request["params"]["size"]})
        case "noise":
            sys.stderr.write("x" * request["params"]["size"] + "\n")
            sys.stderr.flush()
            send(type="result", id=number, data={"ok": True})
        case "family" | "stubborn":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            children = [_child(own_session=False), _child(own_session=True)]
            send(type="progress", id=number, data={"pids": [os.getpid(), *children]})
        case "hang" | "polite":
            send(type="progress", id=number, data={"pids": [os.getpid()]})


def main() -> None:
    """Serve until stdin ends; a stubborn one doesn't even then."""
    stubborn = False
    waiting: int | None = None
    for line in sys.stdin:
        message = json.loads(line)
        if message["type"] == "cancel":
            if waiting == message["id"]:
                send(type="error", id=waiting, code="JOB_CANCELLED")
        else:
            stubborn |= message["method"] in ("stubborn", "family")
            waiting = message["id"] if message["method"] == "polite" else None
            serve(message)
    if stubborn:
        threading.Event().wait()


if __name__ == "__main__":
    main()
