"""What this process was told to be: from the host's first line, the command line and the environment."""

import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from host_bridge.protocol import SessionSettings
from sidecar.kernel.catalogue import DEFAULT_LOCALE, Locale, parse_locale
from sidecar.kernel.paths import DataPaths, default_data_dir

ENVIRONMENT_VARIABLE: Final = "APP_ENVIRONMENT"
LOG_LEVELS: Final = ("debug", "info", "warning", "error")
_TOKEN_BYTES: Final = 32

Environment = Literal["production", "development"]


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one run. The tokens are never written anywhere by us."""

    paths: DataPaths
    session_token: str = field(repr=False)
    host_token: str = field(repr=False)
    made_session_token: bool = False
    made_host_token: bool = False
    host_pid: int | None = None
    locale: Locale = DEFAULT_LOCALE
    environment: Environment = "production"
    log_level: str = "info"
    port: int = 0
    vault_path: Path | None = None
    extra_models: tuple[Path, ...] = ()

    @property
    def development(self) -> bool:
        """Whether development origins and shortcuts are allowed."""
        return self.environment == "development"


def resolve_settings(
    session: SessionSettings,
    *,
    port: int = 0,
    data_dir: Path | None = None,
    extra_models: tuple[Path, ...] = (),
) -> Settings:
    """Combine the host's first line with the command line; makes the tokens that are missing.

    The command line's data directory wins over the first line's, and that over ``APP_DATA_DIR``.
    """
    chosen_dir = data_dir or (Path(session.data_dir) if session.data_dir else default_data_dir())
    development = os.environ.get(ENVIRONMENT_VARIABLE, "").strip().lower() == "development"
    level = (session.log_level or "info").lower()
    return Settings(
        paths=DataPaths(chosen_dir.absolute()),
        session_token=session.session_token or secrets.token_urlsafe(_TOKEN_BYTES),
        host_token=session.host_token or secrets.token_urlsafe(_TOKEN_BYTES),
        made_session_token=session.session_token is None,
        made_host_token=session.host_token is None,
        host_pid=session.host_pid,
        locale=parse_locale(session.locale) or DEFAULT_LOCALE,
        environment="development" if development else "production",
        log_level=level if level in LOG_LEVELS else "info",
        port=port,
        vault_path=Path(session.vault_path) if session.vault_path else None,
        extra_models=extra_models,
    )
