"""Tells uv how this machine gets out: the proxy and the authorities of the settings."""

import os
from pathlib import Path
from typing import Final

from cuda_installer.state import AUTHORITIES
from sidecar.kernel.logging import get_logger
from sidecar.kernel.network_settings import Network

log = get_logger(__name__)

_OWN_MACHINE: Final = "localhost,127.0.0.1,::1"


def way_out_for_uv(network: Network, root: Path) -> dict[str, str]:
    """Return the variables by which uv goes the way of *network*; none where nothing is set.

    A file of authorities takes the place of uv's own, so the usual ones and the further ones are
    written to one file in *root*. Without a file that can be read the usual ones alone are trusted.
    Blocking.
    """
    variables: dict[str, str] = {}
    if network.proxy:
        # Both spellings: whoever reads them prefers one or the other.
        for name in ("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY"):
            variables[name] = variables[name.lower()] = network.proxy
        told = os.environ.get("NO_PROXY") or os.environ.get("no_proxy")
        direct = f"{told},{_OWN_MACHINE}" if told else _OWN_MACHINE
        variables["NO_PROXY"] = variables["no_proxy"] = direct
    if network.ca_file:
        try:
            variables["SSL_CERT_FILE"] = str(_all_authorities(Path(network.ca_file), root))
        except (OSError, ValueError) as error:
            log.warning("runtime.authorities_unusable", extra={"reason": type(error).__name__})
    return variables


def _all_authorities(further: Path, root: Path) -> Path:
    import certifi  # noqa: PLC0415 - comes with httpx, which trusts it; needed for nothing before

    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    written = root / AUTHORITIES
    text = Path(certifi.where()).read_text(encoding="utf-8")
    written.write_text(f"{text}\n{further.read_text(encoding='utf-8')}", encoding="utf-8")
    return written
