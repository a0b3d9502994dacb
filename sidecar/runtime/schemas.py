"""Wire models of the runtime component."""

from typing import Literal

from pydantic import BaseModel, Field

from sidecar.kernel.errors import ErrorBody

RuntimeStatus = Literal[
    "checking", "not_installed", "installing", "installed", "failed", "interrupted"
]
RuntimeStage = Literal[
    "preparing",
    "creating_environment",
    "resolving",
    "downloading",
    "installing",
    "verifying",
    "finishing",
]


class RuntimeComponent(BaseModel):
    """The managed runtime, or the interpreter that the user chose in its place."""

    status: RuntimeStatus = Field(
        description="`failed` and `interrupted` tell of the last installation, or of an environment that "
        "doesn't work; one that worked before an installation still does then, and `torch` names it."
    )
    stage: RuntimeStage | None = Field(
        description="What an installation does now; stages follow in the order of this list, and none is a "
        "measure of bytes or time. Null while nothing is installed."
    )
    supported: bool = Field(description="Whether there is a runtime for this computer at all.")
    custom_interpreter: bool = Field(
        description="Whether the user chose a Python of their own; nothing is ever installed into it."
    )
    cuda_available: bool | None = Field(
        description="Whether a computation on a CUDA device was right when it was tried; null while that "
        "isn't known."
    )
    torch: str | None = Field(default=None, description="torch's version, read by importing it.")
    error: ErrorBody | None = Field(
        default=None,
        description="Why it failed. `details.reason` is a stable name, `details.explanation` a sentence.",
    )
