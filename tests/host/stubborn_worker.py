"""A worker that never finishes, with a child of its own; ``stubborn`` ones ignore every signal.

The stubborn child leads a session of its own, so that killing its parent's group doesn't reach it.
"""

import json
import os
import signal
import subprocess
import sys
import threading

SLEEP = "import signal, threading; signal.signal(signal.SIGTERM, signal.SIG_IGN); threading.Event().wait()"


def main(mode: str) -> None:
    """Answer a request with both process ids, and work for ever."""
    stubborn = mode == "stubborn"
    if stubborn:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
    request = json.loads(sys.stdin.readline())
    with subprocess.Popen(
        [sys.executable, "-c", SLEEP if stubborn else "import threading; threading.Event().wait()"],
        stdin=subprocess.DEVNULL,
        start_new_session=stubborn,
    ) as child:
        data = {"worker_pid": os.getpid(), "child_pid": child.pid}
        print(json.dumps({"type": "progress", "id": request["id"], "data": data}), flush=True)  # noqa: T201 - its protocol
        while sys.stdin.readline() or stubborn:
            threading.Event().wait(0.05)
        child.kill()


if __name__ == "__main__":
    main(sys.argv[1])
