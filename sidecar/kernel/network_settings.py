"""How this machine gets out: kept as settings, read by whoever fetches something."""

import ipaddress
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from sidecar.kernel.database import Readable, Transaction
from sidecar.kernel.setting_store import get_setting, put_setting

PROXY_SETTING: Final = "outbound.proxy"
CA_FILE_SETTING: Final = "outbound.ca_file"


@dataclass(frozen=True, slots=True)
class Network:
    """A proxy's address and a PEM file with further authorities; what is None comes from the environment."""

    proxy: str | None = None
    ca_file: str | None = None


def read_network(conn: Readable) -> Network:
    """Return what is set."""
    return Network(get_setting(conn, PROXY_SETTING), get_setting(conn, CA_FILE_SETTING))


def write_network(tx: Transaction, network: Network) -> None:
    """Store it whole."""
    put_setting(tx, PROXY_SETTING, network.proxy)
    put_setting(tx, CA_FILE_SETTING, network.ca_file)


def is_this_machine(url: str) -> bool:
    """Whether an address leads to this machine itself, which is asked directly whatever proxy is set."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
