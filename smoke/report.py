"""A row of steps: what was tried, how long it took, what was seen."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field


class SmokeFailure(Exception):
    """Something is not as it must be. The message says what was seen."""


def require(condition: object, seen: str) -> None:
    """Raise :class:`SmokeFailure` with what was seen, unless the condition holds."""
    if not condition:
        raise SmokeFailure(seen)


@dataclass(slots=True)
class Step:
    """One line of the report."""

    name: str
    ok: bool
    seconds: float
    detail: str


@dataclass(slots=True)
class Report:
    """Collects steps and prints each as it ends; with ``quiet`` only at the end as JSON."""

    executable: str
    quiet: bool
    steps: list[Step] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)

    def run(self, name: str, action: Callable[[], str]) -> bool:
        """Run a step; its text says what was seen. A step that fails does not stop the others."""
        started = time.monotonic()
        try:
            detail, ok = action(), True
        except Exception as error:  # noqa: BLE001 - whatever goes wrong is this step's finding
            detail, ok = f"{type(error).__name__}: {error}", False
        step = Step(name, ok, round(time.monotonic() - started, 3), detail)
        self.steps.append(step)
        if not self.quiet:
            mark = "ok  " if ok else "FAIL"
            text = detail.replace("\n", "\n" + " " * 18)
            print(f"{mark}  {step.seconds:7.2f} s  {name:<36} {text}", flush=True)
        return ok

    @property
    def ok(self) -> bool:
        """Whether every step succeeded, and there was one."""
        return bool(self.steps) and all(step.ok for step in self.steps)

    def finish(self) -> int:
        """Print the end of the report and give the exit status."""
        if self.quiet:
            print(json.dumps({**asdict(self), "ok": self.ok}, ensure_ascii=False, indent=2))
        else:
            for name, value in self.figures.items():
                print(f"      {value:9.3f}    {name}")
            failed = sum(not step.ok for step in self.steps)
            print(f"{len(self.steps) - failed} of {len(self.steps)} steps passed")
        return 0 if self.ok else 1
