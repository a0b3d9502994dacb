"""An installation goes out the way that the settings say."""

import datetime as dt
import ipaddress
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sidecar.kernel.network_settings import Network
from sidecar.runtime.way_out import way_out_for_uv
from tests.app_client import RunningApp
from tests.cuda_installer.packages import HoldingIndex, Wheelhouse
from tests.runtime.conftest import finished, install

NETWORK = "/api/system/network"
Variables = Callable[..., None]


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


async def test_the_proxy_of_the_settings_is_used(
    app: RunningApp, index: HoldingIndex, variables: Variables
) -> None:
    outside = "http://packages.invalid/simple"
    variables(wheelhouse="", index=outside, torch_index=outside)
    index.released.set()
    proxy = index.address.removesuffix("/simple")
    answer = await app.http.put(NETWORK, json={"proxy": proxy, "ca_file": None})
    assert answer.status_code == 200
    await install(app)
    assert (await finished(app))["status"] == "installed"
    assert index.addresses
    assert all(address.startswith("http://packages.invalid/") for address in index.addresses)


@pytest.mark.parametrize("told", [True, False])
async def test_an_authority_of_the_settings_is_trusted(
    app: RunningApp, house: Wheelhouse, tmp_path: Path, variables: Variables, told: bool
) -> None:
    authority, context = company(tmp_path)
    with HoldingIndex(house.wheels, context) as index:
        index.released.set()
        variables(wheelhouse="", index=index.address, torch_index=index.address)
        if told:
            network = {"proxy": None, "ca_file": str(authority)}
            assert (await app.http.put(NETWORK, json=network)).status_code == 200
        await install(app)
        found = await finished(app)
    if told:
        assert found["status"] == "installed"
    else:
        assert found["error"]["details"]["reason"] == "packages_unavailable"


def test_what_is_asked_directly_stays_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proxied = Network("http://127.0.0.1:7890")
    assert way_out_for_uv(proxied, tmp_path)["no_proxy"] == "localhost,127.0.0.1,::1"
    monkeypatch.setenv("NO_PROXY", "mirror.example")
    told = way_out_for_uv(proxied, tmp_path)
    assert told["NO_PROXY"] == told["no_proxy"] == "mirror.example,localhost,127.0.0.1,::1"
    assert told["HTTPS_PROXY"] == told["https_proxy"] == "http://127.0.0.1:7890"


def test_the_usual_authorities_stay(tmp_path: Path) -> None:
    authority, _ = company(tmp_path)
    variables = way_out_for_uv(Network(None, str(authority)), tmp_path / "runtime")
    assert list(variables) == ["SSL_CERT_FILE"]
    context = ssl.create_default_context(cafile=variables["SSL_CERT_FILE"])
    names = [str(one["subject"]) for one in context.get_ca_certs()]
    assert len(names) > 50 and sum("a company" in name for name in names) == 1


def test_nothing_is_set_without_settings(tmp_path: Path) -> None:
    assert way_out_for_uv(Network(), tmp_path) == {}
    missing = Network(None, str(tmp_path / "missing.pem"))
    assert way_out_for_uv(missing, tmp_path) == {}


def company(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """Return a company's authority, and a server's context with a certificate of it for 127.0.0.1."""
    root_key, root = _certificate("a company", None, None)
    key, made = _certificate("a server", root_key, root)
    authority, chain = folder / "company.pem", folder / "server.pem"
    authority.write_bytes(root.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    chain.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(chain)
    return authority, context


def _certificate(
    name: str, issuer_key: ec.EllipticCurvePrivateKey | None, issuer: x509.Certificate | None
) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), False)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), True)
    )
    return key, builder.sign(issuer_key or key, hashes.SHA256())
