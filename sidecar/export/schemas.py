"""Wire models of exports."""

import posixpath
import re
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from sidecar.export.colours.themes import DEFAULT_THEME, CodeTheme
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.jobs.schemas import JobProgress
from sidecar.kernel.paging import Page, PageQuery, empty_as_absent

MAX_MARKDOWN: Final = 200_000
MAX_TITLE: Final = 200

ExportFormat = Literal["html", "pdf", "docx"]
ExportStatus = Literal["queued", "running", "completed", "failed", "cancelled"]
PageSize = Literal["A4", "Letter"]
Colour = Annotated[
    str, Field(pattern=r"^#[0-9a-fA-F]{6}$", description="`#RRGGBB`.", examples=["#1F2328"])
]

_DRIVE = re.compile(r"[a-zA-Z]:")


class NoteSource(BaseModel):
    """A note of the vault."""

    type: Literal["note"]
    note_id: str = Field(min_length=1, description="The note whose current text is exported.")


class MarkdownSource(BaseModel):
    """A text that need not be saved anywhere. It is forgotten when the job ends."""

    type: Literal["markdown"]
    markdown: str = Field(
        description=f"The text; for html and docx at most {MAX_MARKDOWN:,} characters."
    )
    file_path: str | None = Field(
        None,
        description="Where in the vault the text would lie, with `/` between folders. Pictures that the "
        "text names are looked for relative to it; the file itself isn't read.",
        examples=["Courses/Operating systems.md"],
    )

    @field_validator("file_path")
    @classmethod
    def _inside_the_vault(cls, value: str | None) -> str | None:
        if value is None or value == "":
            return None
        path = posixpath.normpath(value.replace("\\", "/"))
        if "\0" in value or path.startswith(("/", "~")) or _DRIVE.match(path):
            raise PydanticCustomError("path_absolute", "The path must be relative to the vault.")
        if path == ".." or path.startswith("../"):
            raise PydanticCustomError("path_outside", "The path must stay inside the vault.")
        return path


class Palette(BaseModel):
    """The colours of a theme that isn't built in, frozen when the export is asked for."""

    page: Colour
    surface: Colour
    text: Colour
    muted: Colour
    code: Colour
    border: Colour
    accent: Colour


class ExportOptions(BaseModel):
    """How the document looks. Whatever is left out has its default."""

    model_config = ConfigDict(strict=True)

    theme_id: str = Field(
        DEFAULT_THEME,
        max_length=100,
        description="A built-in theme: light, dark, sepia, forest, ocean or high-contrast. Another name "
        "without a palette gives the light colours and a warning.",
    )
    include_title: bool = Field(True, description="Whether the document starts with its title.")
    include_metadata: bool = Field(
        False, description="Whether a note's tags and times stand below the title."
    )
    page_size: PageSize = Field("A4", description="The size of printed pages.")
    code_theme: CodeTheme = Field("github-light", description="The colours of highlighted code.")
    palette: Palette | None = Field(
        None, description="Colours that are used instead of the theme's."
    )


class ExportAsset(BaseModel):
    """A picture that the client drew for a part of the document."""

    kind: Literal["mermaid", "math_block", "math_inline", "image"]
    source_hash: str = Field(
        pattern=r"^[0-9a-fA-F]{64}$",
        description="SHA-256, in hex, of the part's source: stripped, in UTF-8. For an image, of its address.",
    )
    png_base64: str = Field(description="A whole PNG in base64.")


class ExportRequest(BaseModel):
    """What to export, and how."""

    source: Annotated[NoteSource | MarkdownSource, Field(discriminator="type")]
    format: ExportFormat
    options: ExportOptions = Field(default_factory=ExportOptions)
    title: str | None = Field(
        None,
        max_length=MAX_TITLE,
        description="The document's title. Without it, the note's title or the text's first heading.",
    )
    assets: list[ExportAsset] = Field(
        default_factory=list, description="Pictures for diagrams, formulas and images."
    )

    @field_validator("options", mode="wrap")
    @classmethod
    def _options_have_their_own_code(
        cls, value: Any, handler: ValidatorFunctionWrapHandler
    ) -> ExportOptions:
        try:
            options: ExportOptions = handler(value)
        except ValidationError as error:
            raise ProjectError(
                "EXPORT_OPTIONS_INVALID",
                details={
                    "errors": [
                        {
                            "loc": ["body", "options", *found["loc"]],
                            "message": found["msg"],
                        }
                        for found in error.errors(include_url=False, include_input=False)
                    ]
                },
            ) from error
        return options

    @model_validator(mode="after")
    def _within_the_formats_limits(self) -> Self:
        source = self.source
        too_long = isinstance(source, MarkdownSource) and len(source.markdown) > MAX_MARKDOWN
        if self.format != "pdf" and too_long:
            raise ProjectError(
                "VALIDATION_ERROR",
                details={
                    "errors": [
                        {
                            "loc": ["body", "source", "markdown", "markdown"],
                            "message": f"String should have at most {MAX_MARKDOWN} characters",
                        }
                    ]
                },
            )
        return self


class ExportFile(BaseModel):
    """The artefact of a completed job."""

    file_name: str = Field(examples=["操作系统复习.html"])
    mime_type: str = Field(examples=["text/html"])
    size: int = Field(description="In bytes.")
    sha256: str = Field(description="Of the file's bytes, in lower-case hex.")
    expires_at: str = Field(description="Until when the file can be downloaded.")


class ExportJob(BaseModel):
    """An export, and where it stands."""

    job_id: str
    status: ExportStatus
    format: ExportFormat
    progress: JobProgress | None
    file: ExportFile | None = Field(description="Set once the job is completed.")
    warnings: list[str] = Field(
        description="What could not be shown as it is in the text: which part, and what became of it."
    )
    error: str | None
    error_code: str | None
    created_at: str
    started_at: str | None
    completed_at: str | None


class ExportJobListResponse(BaseModel):
    """A page of exports, newest first."""

    items: list[ExportJob]
    page: Page


class ExportListQuery(PageQuery):
    """Query parameters of the list of exports. An empty value counts as absent."""

    status: Annotated[ExportStatus | None, BeforeValidator(empty_as_absent)] = Field(
        None, description="Only exports with this status."
    )
    format: Annotated[ExportFormat | None, BeforeValidator(empty_as_absent)] = Field(
        None, description="Only exports of this format."
    )
