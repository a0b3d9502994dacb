"""Transcription profiles: how the local model is run, by name.

``default`` is always there. A file in the data directory, ``transcription.json``, can change it, add
others, raise the limit of uploads and keep unused attachments longer; it is written by the user or the
host, never by a request:

    {"attachment_limit_mib": 200,
     "attachment_retention_days": 30,
     "profiles": {"interview": {"model": "whisper-large-v3", "beam_size": 8, "vault_terms": false}}}

A profile is read anew for each recording. The two settings of attachments, and how many recordings are
recognised at once, hold from the next start on.
"""

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sidecar.kernel.errors import ProjectError
from sidecar.kernel.logging import get_logger

log = get_logger(__name__)

SETTINGS_FILE: Final = "transcription.json"
DEFAULT_PROFILE: Final = "default"
DEFAULT_LIMIT_MIB: Final = 25
DEFAULT_RETENTION_DAYS: Final = 7
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

ProfileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Device = Literal["auto", "cpu", "cuda"]
Script = Literal["simplified", "traditional", "as_heard"]


class VoiceActivity(BaseModel):
    """How speech is told from what is none. Times in milliseconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = True
    threshold: float = Field(0.5, gt=0, lt=1)
    min_speech_ms: int = Field(0, ge=0, le=10_000)
    min_silence_ms: int = Field(2000, ge=50, le=10_000)
    speech_pad_ms: int = Field(400, ge=0, le=2000)


class TranscriptionProfile(BaseModel):
    """How recordings are transcribed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str | None = Field(None, min_length=1, max_length=200)
    """The name of an installed model; None for the best one."""
    device: Device = "auto"
    compute_type: Literal[
        "auto", "int8", "int8_float16", "int8_float32", "float16", "bfloat16", "float32"
    ] = "auto"
    beam_size: int = Field(5, ge=1, le=20)
    batch_size: int | None = Field(None, ge=1, le=64)
    """Half minutes that are recognised at once; 1 is one after the other, None what suits the device.

    In a batch no window knows what was said before it: a quarter of a processor's time is saved, and
    Chinese is heard noticeably worse (8.0 % of the characters became 12.5 % with Whisper base).
    """
    vad: VoiceActivity = VoiceActivity()
    initial_prompt: str | None = Field(None, max_length=400)
    script: Script = "simplified"
    """The characters that Chinese is written in."""
    vault_terms: bool = True
    """Whether the recogniser may listen for words from the titles, headings and tags of the notes."""
    parallel_jobs: int = Field(1, ge=1, le=8)
    """How many recordings may be recognised at once while one of this profile is."""


class TranscriptionSettings(BaseModel):
    """What the file holds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    attachment_limit_mib: int = Field(DEFAULT_LIMIT_MIB, ge=1, le=4096)
    attachment_retention_days: int = Field(DEFAULT_RETENTION_DAYS, ge=1, le=36_500)
    """How long an attachment is kept that nothing refers to."""
    profiles: dict[ProfileName, TranscriptionProfile] = Field(default_factory=dict)


class TranscriptionProfiles:
    """The profiles of one data directory."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / SETTINGS_FILE
        self._settings = TranscriptionSettings()
        self._stamp: tuple[int, int] | None = None
        self.wrong_at: str | None = None
        """Where the file is wrong, if it is: the place of the field, or "" for a file that is no JSON."""
        self.refresh()

    def refresh(self) -> None:
        """Read the file again if it was changed. A file that is wrong changes nothing, and is logged."""
        try:
            status = self._path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            if stamp != self._stamp:
                self._stamp = stamp
                # Editors on Windows begin a file with a mark.
                content = self._path.read_bytes().removeprefix(_BYTE_ORDER_MARK)
                self._settings = TranscriptionSettings.model_validate_json(content)
                self.wrong_at = None
        except FileNotFoundError:
            self._stamp, self._settings, self.wrong_at = None, TranscriptionSettings(), None
        except ValidationError as error:
            self.wrong_at = ".".join(str(part) for part in error.errors()[0]["loc"])
            log.error("transcription.settings_unusable", extra={"field": self.wrong_at})
        except OSError as error:
            self.wrong_at = ""
            log.error("transcription.settings_unusable", extra={"reason": type(error).__name__})

    @property
    def names(self) -> list[str]:
        """The names of all profiles."""
        return list(dict.fromkeys([DEFAULT_PROFILE, *self._settings.profiles]))

    @property
    def attachment_limit(self) -> int:
        """The size of the largest file that can be uploaded, in bytes."""
        return self._settings.attachment_limit_mib * 1024 * 1024

    @property
    def attachment_retention_days(self) -> int:
        """How many days an attachment is kept that nothing refers to."""
        return self._settings.attachment_retention_days

    @property
    def most_parallel_jobs(self) -> int:
        """The most recordings that any profile lets be recognised at once."""
        chosen = (profile.parallel_jobs for profile in self._settings.profiles.values())
        return max(chosen, default=1)

    def get(self, profile_id: str) -> TranscriptionProfile:
        """Return a profile as the file has it now, or raise ``TRANSCRIPTION_PROFILE_NOT_FOUND``."""
        self.refresh()
        found = self._settings.profiles.get(profile_id)
        if found is not None:
            return found
        if profile_id == DEFAULT_PROFILE:
            return TranscriptionProfile()
        raise ProjectError("TRANSCRIPTION_PROFILE_NOT_FOUND")
