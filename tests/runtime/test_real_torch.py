"""The whole CPU flavour: the bundled lock, torch itself and the pipeline that tells speakers apart."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cuda_installer import flavours
from tests.app_client import running_app
from tests.runtime.conftest import finished, install, settled

INSTALL_SECONDS = 420


def wheels_folder() -> Path | None:
    """Return the folder of pip's find-links that has the locked torch for this machine."""
    configured = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.find-links"],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    words = f"{os.environ.get('PIP_FIND_LINKS', '')} {configured.stdout}".split()
    version = flavours.by_name("cpu").locked_versions()["torch"]
    for folder in map(Path, words):
        if any(folder.glob(f"torch-{version}-cp311-*_x86_64.whl")):
            return folder
    return None


@pytest.mark.timeout(INSTALL_SECONDS + 60)
@pytest.mark.proves(
    "local-models.runtime.installed-is-verified",
    "local-models.runtime.cuda-available-true-only-real",
    "local-models.runtime.torch-version",
)
async def test_the_cpu_flavour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheels = wheels_folder()
    if wheels is None:
        pytest.skip("no folder of pip's find-links holds torch's CPU wheel")
    for name in ("LOCKS", "WHEELHOUSE"):
        monkeypatch.delenv(f"CUDA_INSTALLER_{name}")
    monkeypatch.setenv("CUDA_INSTALLER_EXTRA_WHEELS", str(wheels))
    async with running_app(tmp_path, open_vault=False) as app:
        await settled(app)
        try:
            await install(app)
            found = await finished(app, INSTALL_SECONDS)
            assert (found["status"], found["error"]) == ("installed", None)
            assert (found["torch"], found["cuda_available"]) == ("2.13.0+cpu", False)
            python = await app.services.runtime.interpreter()
            assert python is not None
            said = subprocess.run(  # noqa: ASYNC221
                [python, "-I", "-c", "import torch; print(torch.arange(5.0).sum().item())"],
                capture_output=True,
                encoding="utf-8",
                check=True,
            )
            assert said.stdout == "10.0\n"
        finally:
            # More than a gigabyte, which nobody looks at again.
            shutil.rmtree(app.data_dir / "runtime", ignore_errors=True)
