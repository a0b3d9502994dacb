"""A host that is meant to be killed: a sidecar at work, whose process ids it prints.

The list is: the sidecar, a worker and its child, a stubborn worker and its stubborn child.
"""

import json
import sys
import threading

from host_bridge.launcher import launch


def main(data_dir: str) -> None:
    """Start the work, tell of it, and never end."""
    sidecar = launch([sys.executable, "-m", "tests.host.working_sidecar"], data_dir=data_dir)
    pids = [sidecar.pid]
    for stubborn in (False, True):
        answer = sidecar.host_post("/host/trial/work", json={"ignore_signals": stubborn})
        work = answer.check(201).json()
        pids += [work["worker_pid"], work["child_pid"]]
    print(json.dumps(pids), flush=True)  # noqa: T201 - it is a program
    threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1])
