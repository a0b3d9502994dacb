"""Wire models of local models."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from sidecar.kernel.errors import ErrorBody
from sidecar.kernel.jobs.store import JobStatus
from sidecar.kernel.paging import Page
from sidecar.local_models.catalogue import Purpose

ModelStatus = Literal["not_installed", "downloading", "installed", "damaged"]


class ModelProgress(BaseModel):
    """How far something that is done with a model came."""

    status: JobStatus
    bytes: int = Field(
        description="How many bytes were there when it was last told; of a verification, were read."
    )
    total: int | None = Field(description="How many there will be; null while that isn't known.")
    error: ErrorBody | None = Field(description="Why it failed or was cancelled.")


class LocalModel(BaseModel):
    """A model that can run on this computer."""

    model_id: str
    display_name: str
    purpose: Purpose
    status: ModelStatus = Field(
        description="`downloading` also while an import runs, not while a verification does. A `damaged` model "
        "isn't used; a download repairs it."
    )
    disk_bytes: int | None = Field(
        description="What the model's folder holds right now; null without one, or if it can't be "
        "read. It has nothing to do with the counters of a download."
    )
    download: ModelProgress | None = Field(
        description="The newest download or import; null if there never was one."
    )
    verification: ModelProgress | None = Field(
        description="The newest verification; null if there never was one. What it found is the `status`."
    )
    in_use: bool = Field(description="Whether an inference runs with it or waits for it.")
    removable: bool = Field(
        description="Whether the model lies in the managed folder, so that it can be removed."
    )
    download_bytes: int | None = Field(
        description="What a download takes; an estimate where a file's length isn't known."
    )
    hashes_known: bool = Field(
        description="Whether the catalogue knows the SHA-256 of every file. Otherwise a file is "
        "checked against what its source announces, and by its structure."
    )
    languages: list[str] = Field(description="Codes of languages; `*` stands for very many.")
    licence: str | None = Field(description="An SPDX name; null for a model of your own.")
    recommended: bool = Field(description="Whether it is the first choice for its purpose.")
    gated: bool = Field(
        description="Whether its owner asks for an agreement on `page_url` and for a token, which "
        "is stored as the credential `provider.huggingface`."
    )
    page_url: str | None
    runtime: Literal["bundled", "managed"] = Field(
        description="`managed` needs the runtime component."
    )


class LocalModelListResponse(BaseModel):
    """A page of models."""

    items: list[LocalModel]
    page: Page


class ModelImportRequest(BaseModel):
    """Which registered folder or archive to import."""

    model_config = ConfigDict(extra="forbid")

    package_id: str = Field(
        min_length=1,
        max_length=200,
        description="The handle that the host got for the folder or archive; paths aren't taken.",
    )
    link: bool = Field(
        False,
        description="Leave the files of a folder where they are and link to them. Removing the model removes "
        "the links alone. Files that change or vanish make it damaged. An archive is always copied.",
    )


class DiagnosticRecord(BaseModel):
    """One attempt to use a local model, or one fallback. What isn't known is null."""

    id: str
    created_at: str
    kind: Literal["call", "fallback"]
    purpose: str
    model_id: str | None
    requested_device: str | None
    actual_device: str | None = Field(
        description="The device that the inference ran on; null if it never began."
    )
    status: str
    load_ms: int | None = Field(description="Null if the model was loaded already, or never.")
    duration_ms: int | None
    error_code: str | None
    fallback_reason: str | None


class DiagnosticsResponse(BaseModel):
    """The newest attempts of the application, newest first."""

    scope: Literal["application_last_200_attempts"]
    items: list[DiagnosticRecord]
