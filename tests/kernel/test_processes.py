"""The environment of children, and the end of their trees."""

import json
import sys

import pytest

from sidecar.kernel.processes import (
    child_environment,
    end_tree,
    own_command,
    own_environment,
    process_exists,
    spawn,
)
from tests.kernel.waiting import gone

FOR_EVER = "import threading; threading.Event().wait()"
FAMILY = f"""
import json, signal, subprocess, sys, threading
signal.signal(signal.SIGTERM, signal.SIG_IGN)
ignore = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {FOR_EVER}"
children = [
    subprocess.Popen([sys.executable, "-c", ignore], start_new_session=own).pid for own in (False, True)
]
print(json.dumps(children), flush=True)
threading.Event().wait()
"""


def test_what_is_ours_or_secret_is_left_out() -> None:
    base = {
        "PATH": "/usr/bin",
        "HOME": "/home/me",
        "LANG": "zh_CN.UTF-8",
        "HTTPS_PROXY": "http://proxy:8080",
        "OPENAI_API_KEY": "sk-1",
        "GITHUB_TOKEN": "t",
        "My_Secret": "s",
        "DB_PASSWORD": "p",
        "AWS_CREDENTIALS": "c",
        "APP_DATA_DIR": "/data",
        "app_environment": "development",
        "SIDECAR_X": "1",
        "NOTESAGENT_VAULT": "/vault",
        "PYTHONPATH": "/ours",
        "PYTHONHOME": "/ours",
        "_PYI_ARCHIVE_FILE": "/bundle",
        "_MEIPASS2": "/bundle",
        "VIRTUAL_ENV": "/venv",
        "FONTCONFIG_FILE": "/bundle/fonts.conf",
        "MPLCONFIGDIR": "/x",
        "LD_LIBRARY_PATH": "/bundle",
        "LD_LIBRARY_PATH_ORIG": "/usr/lib/mine",
        "DYLD_LIBRARY_PATH": "/mine",
    }
    assert child_environment(base=base) == {
        "PATH": "/usr/bin",
        "HOME": "/home/me",
        "LANG": "zh_CN.UTF-8",
        "HTTPS_PROXY": "http://proxy:8080",
        # What the bundle put there is gone, and what the user had there is back.
        "LD_LIBRARY_PATH": "/usr/lib/mine",
        "DYLD_LIBRARY_PATH": "/mine",
    }


def test_a_frozen_program_keeps_its_library_paths_to_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    base = {"LD_LIBRARY_PATH": "/bundle", "DYLD_LIBRARY_PATH": "/bundle", "PATH": "/usr/bin"}
    assert child_environment(base=base) == {"PATH": "/usr/bin"}
    assert own_command("worker", "speech") == [sys.executable, "worker", "speech"]
    assert own_environment() == {"PYINSTALLER_RESET_ENVIRONMENT": "1"}


def test_what_is_asked_for_is_added_as_it_is() -> None:
    assert child_environment({"MCP_API_KEY": "k"}, base={}) == {"MCP_API_KEY": "k"}


async def test_a_child_gets_that_environment_and_no_descriptor_of_ours() -> None:
    show = "import json, os; print(json.dumps([dict(os.environ), sorted(os.listdir('/proc/self/fd'))]))"
    with open(__file__, encoding="utf-8") as ours:  # noqa: ASYNC230, PTH123 - a descriptor to leak
        process = await spawn([sys.executable, "-c", show], environment={"A": "b"})
        output, _ = await process.communicate()
        assert ours.fileno() > 2
    environment, descriptors = json.loads(output)
    assert {name: environment[name] for name in environment if name != "LC_CTYPE"} == {"A": "b"}
    # Its three streams, and the one with which it lists them.
    assert len(descriptors) == 4


@pytest.mark.parametrize("grace", [0.0, 0.3])
async def test_the_whole_tree_ends(grace: float) -> None:
    process = await spawn([sys.executable, "-c", FAMILY], environment=child_environment())
    assert process.stdout is not None
    children = json.loads(await process.stdout.readline())
    assert all(process_exists(pid) for pid in (process.pid, *children))
    await end_tree(process, grace=grace)
    assert process.returncode is not None
    await gone(*children)
    # Once more is no error.
    await end_tree(process, grace=grace)


async def test_a_child_that_leaves_when_asked_is_not_killed() -> None:
    process = await spawn([sys.executable, "-c", FOR_EVER], environment=child_environment())
    await end_tree(process, grace=20.0)
    assert process.returncode == -15


async def test_a_program_that_is_not_there() -> None:
    with pytest.raises(OSError, match="such"):
        await spawn(["/no/such/program"], environment={})
