"""Requests of the runtime component, none of which installs anything."""

import sys

from cuda_installer.settings import RuntimeSettings
from sidecar.runtime.installations import RESOURCE
from tests.protocol.live import LiveApp
from tests.protocol.specimens.request import Request, Specimen

PATH = "/api/local-models/runtime-components/cuda"


def _own_interpreter(app: LiveApp) -> Request:
    """Whoever has an interpreter of their own gets it examined, and no other."""
    RuntimeSettings(interpreter=sys.executable).save(app.data_dir / "runtime")
    return Request()


async def _tell_of_an_installation(app: LiveApp) -> str:
    installations = app.services.runtime.installations
    await installations.begin()
    await installations.stage("preparing")
    await installations.complete()
    return RESOURCE


def _installation_over(app: LiveApp) -> Request:
    app.once("installation", lambda _: app.call(_tell_of_an_installation(app)))
    return Request()


OPERATIONS = {
    f"GET {PATH}": Specimen(200, _own_interpreter),
    f"POST {PATH}": Specimen(202, _own_interpreter),
    f"GET {PATH}/events": Specimen(200, _installation_over),
}

STREAMS = (f"{PATH}/events",)
