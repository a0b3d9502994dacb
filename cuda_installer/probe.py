"""Runs real code in an environment: what it can import and compute decides whether it is one."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cuda_installer.children import Children, clean_environment
from cuda_installer.errors import InstallerError

# Imports have taken 30 s on a busy machine.
PROBE_SECONDS: Final = 240.0
TENSOR: Final = "tensor"
PIPELINE: Final = "pipeline"
ALL_STEPS: Final = (TENSOR, PIPELINE)
MARK: Final = "probe-result:"

# Given to the interpreter as text: a frozen program has no source files to point it at. It answers
# with what it found, and with the first step that failed.
PROGRAM: Final = """
import json, os, sys
answer = os.fdopen(os.dup(1), "w", encoding="ascii")
os.dup2(2, 1)
found = {"python": "%d.%d.%d" % sys.version_info[:3], "cuda_available": False}
step = "start"

def tensor():
    import torch
    found["torch"] = str(torch.__version__)
    found["cuda"] = torch.version.cuda
    def product(device):
        return (torch.ones((2, 3), device=device) @ torch.ones((3, 2), device=device)).sum().item()
    if product("cpu") != 12.0:
        raise ArithmeticError("a product is wrong")
    if torch.cuda.is_available():
        try:
            found["cuda_available"] = product("cuda") == 12.0
            found["device"] = torch.cuda.get_device_name(0)
        except Exception as error:
            found["cuda_error"] = type(error).__name__ + ": " + str(error)

def pipeline():
    import onnxruntime
    onnxruntime.InferenceSession
    from pyannote.audio.pipelines import SpeakerDiarization
    SpeakerDiarization.apply
    import pyannote.audio
    found["pyannote"] = str(pyannote.audio.__version__)

try:
    for step in sys.argv[1:]:
        {"tensor": tensor, "pipeline": pipeline}[step]()
except BaseException as error:
    found["failed_step"] = step
    found["failure"] = type(error).__name__ + ": " + str(error)
answer.write("\\nprobe-result:" + json.dumps(found) + "\\n")
answer.flush()
os._exit(0)
"""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What an environment can do. ``failed_step`` is None if everything that was asked for works.

    ``failure`` is technical. ``cuda_available`` tells that a computation on a CUDA device was right.
    """

    python: str | None
    torch: str | None
    cuda: str | None
    cuda_available: bool
    device: str | None
    failed_step: str | None
    failure: str | None

    @property
    def works(self) -> bool:
        """Whether everything that was asked for works."""
        return self.failed_step is None

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {
            "python": self.python,
            "torch": self.torch,
            "cuda": self.cuda,
            "cuda_available": self.cuda_available,
            "device": self.device,
            "failed_step": self.failed_step,
            "failure": self.failure,
        }


def steps_of(packages: Iterable[str]) -> tuple[str, ...]:
    """Return the steps that an environment with these packages must pass."""
    return (TENSOR, PIPELINE) if "pyannote-audio" in packages else (TENSOR,)


def probe(
    python: Path,
    steps: Iterable[str],
    children: Children,
    *,
    write_bytecode: bool = True,
    timeout: float = PROBE_SECONDS,
) -> ProbeResult:
    """Run the steps with an interpreter. Only with *write_bytecode* its folder may change.

    Nothing is looked up on a network. An interpreter that can't be started, dies or doesn't answer
    gives a result whose ``failed_step`` is ``start``.
    """
    # -I keeps the user's own packages and PYTHON* variables from passing for the environment's.
    options = ["-I"] if write_bytecode else ["-I", "-B"]
    environment = clean_environment(
        {"PYANNOTE_METRICS_ENABLED": "0", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    )
    command = [str(python), *options, "-c", PROGRAM, *steps]
    try:
        status, lines = children.run(command, environment=environment, timeout=timeout)
    except TimeoutError:
        return _dead("it did not answer in time")
    except OSError as error:
        return _dead(str(error))
    answers = [line[len(MARK) :] for line in lines if line.startswith(MARK)]
    if not answers:
        return _dead(f"exit status {status}: " + "\n".join(lines[-5:]))
    found = json.loads(answers[-1])
    return ProbeResult(
        python=found["python"],
        torch=found.get("torch"),
        cuda=found.get("cuda"),
        cuda_available=found["cuda_available"],
        device=found.get("device"),
        failed_step=found.get("failed_step"),
        failure=found.get("failure") or found.get("cuda_error"),
    )


def require_works(result: ProbeResult) -> None:
    """Raise InstallerError ``verification_failed`` if something doesn't work."""
    if not result.works:
        raise InstallerError("verification_failed", f"{result.failed_step}: {result.failure}")


def _dead(why: str) -> ProbeResult:
    return ProbeResult(None, None, None, False, None, "start", why)
