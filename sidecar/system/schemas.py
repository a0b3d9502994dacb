"""Wire models of the program's own paths."""

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError


class Liveness(BaseModel):
    """That the server lives, and nothing more."""

    status: Literal["ok"]


class DirectoryState(BaseModel):
    """The state of a folder; its path is never told."""

    configured: bool = Field(description="Whether the program knows such a folder.")
    exists: bool
    writable: bool
    free_bytes: int | None = Field(description="Free space of its disk; null where it isn't known.")


class Capability(BaseModel):
    """Whether something can be done here and now."""

    available: bool
    reason: str | None = Field(description="A code for why not; null if it is available.")


class SystemInfo(BaseModel):
    """What this program is and can do."""

    version: str
    protocol: int = Field(description="The version of the host protocol.")
    platform: str = Field(description="linux, darwin or win32, and the processor architecture.")
    environment: Literal["production", "development"]
    data_directories: dict[str, DirectoryState] = Field(
        description="By name: data, vault, models, runtime, exports, logs."
    )
    capabilities: dict[str, Capability] = Field(
        description="By name: transcription, diarization, speaker_matching, embedding, pdf_export,"
        " mcp_stdio, cuda."
    )


class SubsystemHealth(BaseModel):
    """How a part of the program is."""

    status: Literal["ok", "degraded", "unavailable"]
    code: str | None = Field(description="A code for what is wrong; null if nothing is.")
    message: str | None = Field(description="What a person may read about it.")


class SystemHealth(BaseModel):
    """How the program is."""

    status: Literal["ok", "degraded"]
    subsystems: dict[str, SubsystemHealth]


class TicketRequest(BaseModel):
    """Which path a ticket is to open."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(
        description="The GET path of an attachment's content, an export's file or a plot's image.",
        max_length=2000,
        examples=["/api/media/attachments/attachment_123/content"],
    )


class Ticket(BaseModel):
    """An address that opens one path without a header."""

    url: str
    expires_at: str


def _proxy(text: str) -> str:
    problem = PydanticCustomError(
        "proxy", "Not an http or https address of a proxy without user, path and query."
    )
    try:
        parts = urlsplit(text)
        usable = parts.port != 0 and bool(parts.hostname)
    except ValueError:
        raise problem from None
    rest = "@" in parts.netloc or parts.path.strip("/") or parts.query or parts.fragment
    if not usable or rest or parts.scheme not in ("http", "https") or not text.isprintable():
        raise problem
    return text.rstrip("/")


class NetworkSettings(BaseModel):
    """How the program gets out, to providers and to what it downloads."""

    model_config = ConfigDict(extra="forbid")

    proxy: Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_proxy)] | None = (
        Field(
            description="Address of a proxy, as http://127.0.0.1:7890. Servers on this machine are asked"
            " directly. Null: as the environment says (HTTPS_PROXY, NO_PROXY)."
        )
    )
    ca_file: Annotated[str, Field(min_length=1, max_length=4096)] | None = Field(
        description="Absolute path of a PEM file with certificate authorities that are trusted"
        " besides the usual ones, as a company's proxy needs it. Null: none."
    )


class VaultRequest(BaseModel):
    """The folder that becomes the vault."""

    path: str = Field(description="An absolute path of this machine.")


class VaultState(BaseModel):
    """The vault that is open now."""

    vault_path: str


class PackageRequest(BaseModel):
    """A file or folder that the host's user chose."""

    path: str = Field(description="An absolute path of this machine.")


class PackageHandle(BaseModel):
    """A name for the chosen package that doesn't show its path."""

    package_id: str
    expires_at: str


class HostProcess(BaseModel):
    """A child of the sidecar."""

    pid: int
    kind: str


class HostStatus(BaseModel):
    """What the host may know about its sidecar, real paths included."""

    pid: int
    port: int
    version: str
    protocol: int
    started_at: str
    data_dir: str
    vault_path: str | None
    processes: list[HostProcess]
