"""What the user chose: kept in the runtime's folder, overridden by the environment."""

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final, Self

from cuda_installer.flavours import AUTO

VARIABLE_PREFIX: Final = "CUDA_INSTALLER_"
FILE_NAME: Final = "settings.json"


@dataclass(frozen=True, slots=True)
class RuntimeSettings:
    """Where the runtime comes from. Empty texts stand for the defaults.

    ``interpreter``: a Python of the user's own that is used as it is. ``python``: the Python that an
    environment is made with; ``python_archive``: one packed as tar or zip; ``python_mirror``:
    where uv fetches Python from. ``wheelhouse``: a folder with every package, nothing else is asked.
    ``extra_wheels``: a folder with some packages. ``index`` and ``torch_index``: mirrors.
    """

    flavour: str = AUTO
    interpreter: str = ""
    python: str = ""
    python_archive: str = ""
    python_mirror: str = ""
    wheelhouse: str = ""
    extra_wheels: str = ""
    index: str = ""
    torch_index: str = ""
    uv: str = ""

    @classmethod
    def load(cls, root: Path) -> Self:
        """Return the settings of the runtime in *root*, overridden by the environment."""
        return cls.stored(root).with_environment()

    @classmethod
    def stored(cls, root: Path) -> Self:
        """Return the settings that are kept in *root*; unreadable ones count as none."""
        try:
            stored = json.loads((root / FILE_NAME).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            stored = {}
        return cls().with_values(stored if isinstance(stored, dict) else {})

    def with_values(self, values: dict[str, Any]) -> Self:
        """Return a copy with those of *values* that are settings and texts."""
        names = {field.name for field in fields(self)}
        known = {k: v for k, v in values.items() if k in names and isinstance(v, str)}
        return type(self)(**{**asdict(self), **known})

    def with_environment(self) -> Self:
        """Return a copy with what the environment says, such as ``CUDA_INSTALLER_WHEELHOUSE``."""
        told = {
            field.name: value
            for field in fields(self)
            if (value := os.environ.get(VARIABLE_PREFIX + field.name.upper()))
        }
        return self.with_values(told)

    def save(self, root: Path) -> None:
        """Keep the settings for the next time; an index's address may hold a password."""
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        target = root / FILE_NAME
        draft = target.with_suffix(".tmp")
        kept = {name: value for name, value in asdict(self).items() if value}
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(kept, file, indent=2, ensure_ascii=False)
        draft.replace(target)
