"""The installer as a child process: it dies with this program, and its words become messages."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

from cuda_installer.reporting import json_line
from sidecar.kernel.logging import get_logger
from sidecar.kernel.processes import (
    child_environment,
    end_tree,
    kill_tree,
    own_command,
    own_environment,
    process_exists,
    spawn,
)

log = get_logger(__name__)

GRACE_SECONDS: Final = 1.5

OnStage = Callable[[str], Awaitable[None]]


async def _no_stage(_: str) -> None:
    """Heed no stage."""


async def run_installer(
    root: Path,
    command: str,
    on_stage: OnStage = _no_stage,
    variables: Mapping[str, str] | None = None,
) -> dict[str, Any] | None:
    """Run ``sidecar runtime <command>`` for the runtime in *root* and return its last message.

    None if it died without one. Cancelling this ends the installer with its whole process tree.
    *variables* are set for it and for uv besides.
    """
    # It ends when its stdin does, and with that also when this program is killed.
    words = ["runtime", "--root", str(root), command, "--json", "--follow-stdin"]
    environment = child_environment({**own_environment(), **(variables or {})})
    process = await spawn(own_command(*words), environment=environment)
    log.info("runtime.installer_started", extra={"command": command, "worker_pid": process.pid})
    conversation = _Conversation(process, on_stage)
    try:
        return await conversation.last_message()
    finally:
        await asyncio.shield(conversation.end())


class _Conversation:
    def __init__(self, process: asyncio.subprocess.Process, on_stage: OnStage) -> None:
        self._process = process
        self._on_stage = on_stage
        self._child: int | None = None
        self._stderr = asyncio.create_task(self._read_stderr())

    async def last_message(self) -> dict[str, Any] | None:
        """Follow the messages to the last one."""
        assert self._process.stdout is not None
        last: dict[str, Any] | None = None
        async for line in self._process.stdout:
            message = json_line(line)
            if message is None:
                continue
            if message["event"] == "stage":
                log.debug("runtime.stage", extra={"stage": message["stage"]})
                await self._on_stage(message["stage"])
            elif message["event"] == "child":
                self._child = message["pid"]
            else:
                last = message
                self._child = None
        if last is None:
            log.error("runtime.installer_died", extra={"exit_code": self._process.returncode})
        elif last["event"] == "failed":
            log.warning(
                "runtime.installer_failed",
                extra={"reason": last["reason"], "technical": last["technical"]},
            )
        return last

    async def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        with contextlib.suppress(ValueError):
            async for line in self._process.stderr:
                text = line.decode("utf-8", "replace").rstrip()
                log.debug("runtime.installer_stderr", extra={"line": text})

    async def end(self) -> None:
        """End what still runs."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        await end_tree(self._process, grace=GRACE_SECONDS)
        # An installer that was killed leaves its child, which leads a group of its own.
        if self._child is not None and process_exists(self._child):
            kill_tree(self._child)
        self._stderr.cancel()
        await asyncio.gather(self._stderr, return_exceptions=True)
