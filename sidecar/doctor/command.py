"""The command ``sidecar doctor``."""

import json
import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from sidecar.doctor.checks_data import (
    check_data_directory,
    check_database,
    check_instance,
    check_managed_runtime,
)
from sidecar.doctor.checks_documents import check_cjk_fonts, check_libreoffice, check_pango
from sidecar.doctor.checks_providers import check_chat_servers
from sidecar.doctor.checks_speech import (
    check_speech_models,
    check_speech_packages,
    check_transcription_profiles,
)
from sidecar.doctor.checks_system import check_credentials, check_gpu, check_program, check_uv
from sidecar.doctor.report import as_json as json_report
from sidecar.doctor.report import as_lines, is_fine
from sidecar.doctor.runner import Check, run_checks
from sidecar.kernel.catalogue import DEFAULT_LOCALE, parse_locale
from sidecar.kernel.paths import DataPaths, default_data_dir


def all_checks(paths: DataPaths, models_dirs: Sequence[Path]) -> dict[str, Check]:
    """Return every check by its name, in the order in which they are shown."""
    return {
        "program": check_program,
        "data_directory": partial(check_data_directory, paths),
        "instance": partial(check_instance, paths),
        "database": partial(check_database, paths),
        "speech_packages": check_speech_packages,
        "speech_models": partial(check_speech_models, (paths.models, *models_dirs)),
        "transcription_profiles": partial(check_transcription_profiles, paths.root),
        "managed_runtime": partial(check_managed_runtime, paths),
        "gpu": check_gpu,
        "credentials": partial(check_credentials, paths),
        "chat_servers": check_chat_servers,
        "cjk_fonts": check_cjk_fonts,
        "pango": check_pango,
        "libreoffice": check_libreoffice,
        "uv": check_uv,
    }


def run_doctor(
    data_dir: Path | None, models_dirs: Sequence[Path], locale: str, as_json: bool
) -> int:
    """Print what is installed and usable; return 0 if everything essential works, else 1.

    *locale* is a language tag; one that the catalogue doesn't have gives English.
    """
    # What the checked parts log is in the findings; it must not appear between them.
    logging.getLogger("sidecar").addHandler(logging.NullHandler())
    paths = DataPaths((data_dir or default_data_dir()).expanduser().absolute())
    findings = run_checks(all_checks(paths, models_dirs))
    language = parse_locale(locale) or DEFAULT_LOCALE
    if as_json:
        print(json.dumps(json_report(findings, language), ensure_ascii=False, indent=2))
    else:
        print("\n".join(as_lines(findings, language)))
    return 0 if is_fine(findings) else 1
