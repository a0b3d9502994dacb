"""One valid request for every operation, and where the jobs of each kind live.

A domain has a module here with `OPERATIONS`, with `JOBS` if it has jobs, and with `STREAMS` if it has streams of
something else. The tests beside this folder need no more.
"""

import importlib
import pkgutil
from typing import Final

from tests.protocol.specimens.request import JobSpecimen, Request, Specimen

__all__ = ["JOBS", "OTHER_STREAMS", "SHOWN_JOBS", "SPECIMENS", "JobSpecimen", "Request", "Specimen"]

SPECIMENS: Final[dict[str, Specimen]] = {}
"""`METHOD /path` → its specimen."""

JOBS: Final[dict[str, JobSpecimen]] = {}
"""Kind of job → its specimen."""

OTHER_STREAMS: Final[set[str]] = set()
"""Paths of streams that tell of something else than one job."""

for _module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
    if _module.name != "request":
        _domain = importlib.import_module(f"{__name__}.{_module.name}")
        SPECIMENS.update(_domain.OPERATIONS)
        JOBS.update(getattr(_domain, "JOBS", {}))
        OTHER_STREAMS.update(getattr(_domain, "STREAMS", ()))

SHOWN_JOBS: Final = {kind: specimen for kind, specimen in JOBS.items() if specimen.shown}
"""The kinds whose jobs can be listed, read and cancelled."""
