"""What speech recognition needs: its packages and a model."""

import importlib
import importlib.metadata
from pathlib import Path
from typing import Final

from sidecar.doctor.findings import Finding, message
from sidecar.doctor.runner import short_reason
from sidecar.doctor.sizes import readable_size
from sidecar.local_models.service import LocalModels
from sidecar.media.service import SETTINGS_FILE, TranscriptionProfiles

# Each before those that import it, so that a failure is told of the package that has it.
PACKAGES: Final = {
    "ctranslate2": "CTranslate2",
    "av": "PyAV",
    "onnxruntime": "ONNX Runtime",
    "faster_whisper": "faster-whisper",
}


def check_speech_packages() -> Finding:
    """Whether the packages can be imported, and in which versions."""
    versions: dict[str, object] = {}
    failures: dict[str, object] = {}
    for name in PACKAGES:
        try:
            versions[name] = _version(name)
        except Exception as error:  # noqa: BLE001 - native packages fail in many ways
            failures[name] = short_reason(error)
    details = {"versions": versions, "failures": failures}
    if not failures:
        listed = ", ".join(f"{PACKAGES[name]} {version}" for name, version in versions.items())
        return Finding("ok", message("speech_packages.ready", packages=listed), None, details)
    listed = "; ".join(f"{PACKAGES[name]} ({reason})" for name, reason in failures.items())
    summary = message("speech_packages.unusable", packages=listed)
    absent = all(str(reason).startswith("ModuleNotFoundError") for reason in failures.values())
    hint = message("speech_packages.hint", command='pip install "notesagent-sidecar[speech]"')
    return Finding("missing" if absent else "error", summary, hint, details)


def _version(name: str) -> str:
    module = importlib.import_module(name)
    stated = getattr(module, "__version__", None)
    # A frozen program carries no metadata for most of its packages.
    return str(stated) if stated else importlib.metadata.version(name)


def check_speech_models(folders: tuple[Path, ...]) -> Finding:
    """Which models are there and whole; none is loaded."""
    models = LocalModels(folders).speech_models()
    details: dict[str, object] = {
        "folders": [str(folder) for folder in folders],
        "models": [
            {
                "name": model.name,
                "path": str(model.path),
                "size_bytes": model.size,
                "damaged": model.damaged,
            }
            for model in models
        ],
    }
    whole = [f"{model.name} ({readable_size(model.size)})" for model in models if not model.damaged]
    damaged = [model.name for model in models if model.damaged]
    found = {"whole": ", ".join(whole) or None, "damaged": ", ".join(damaged) or None}
    if not models:
        hint = message("speech_models.hint", folder=folders[0], option="--models-dir")
        return Finding("missing", message("speech_models.none"), hint, details)
    summary = message("speech_models.found" if whole else "speech_models.all_damaged", **found)
    if damaged:
        hint = message("speech_models.damaged.hint", damaged=found["damaged"])
        return Finding("warning" if whole else "error", summary, hint, details)
    return Finding("ok", summary, None, details)


def check_transcription_profiles(data_dir: Path) -> Finding:
    """Which profiles recordings can be transcribed with, and whether their file can be read."""
    profiles = TranscriptionProfiles(data_dir)
    details: dict[str, object] = {"profiles": profiles.names, "wrong_at": profiles.wrong_at}
    if profiles.wrong_at is None:
        names = ", ".join(profiles.names)
        return Finding("ok", message("transcription_profiles.found", names=names), None, details)
    summary = message("transcription_profiles.wrong", place=profiles.wrong_at or None)
    hint = message("transcription_profiles.hint", file=data_dir / SETTINGS_FILE)
    return Finding("warning", summary, hint, details)
