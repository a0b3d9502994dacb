"""What failures of the system and of sources are called on the wire."""

from typing import Final

from sidecar.kernel.catalogue import Localised
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.full_disk import is_full_disk
from sidecar.local_models.catalogue import CatalogueModel
from sidecar.local_models.importing import invalid

REFUSALS: Final = frozenset({"http_401", "http_403"})


def import_error(error: OSError) -> ProjectError:
    """Return the error of an import that the system refused something."""
    if is_full_disk(error):
        return ProjectError("DISK_SPACE_INSUFFICIENT")
    return invalid("unreadable")


def own_model_error() -> ProjectError:
    """Return the error of a download that nobody offers: the folder is one of the user's own."""
    explanation = Localised("model_download.own_model").to_json()
    details = {"sources": [], "reason": "own_model", "explanation": explanation}
    return ProjectError("MODEL_DOWNLOAD_FAILED", details=details)


def download_error(error: ProjectError, model: CatalogueModel, token: str | None) -> ProjectError:
    """Return the error of a download; of one that the model's owner refused, with what can be done."""
    reasons = {source["reason"] for source in error.details.get("sources", ())}
    if not (model.gated and reasons & REFUSALS):
        return error
    reason = "token_refused" if token else "token_missing"
    explanation = Localised(f"model_download.{reason}").to_json()
    told = {"reason": reason, "explanation": explanation, "page_url": model.page}
    return ProjectError(error.code, details={**error.details, **told})
