"""What the program tells about itself, and to whom."""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from sidecar.kernel.catalogue import ERRORS
from sidecar.version import VERSION
from tests.host.conftest import Start
from tests.host.serving import MODEL_ARGUMENTS, Serving, eventually

DIRECTORIES = {"data", "vault", "models", "runtime", "exports", "logs"}
CAPABILITIES = {
    "transcription",
    "diarization",
    "speaker_matching",
    "embedding",
    "pdf_export",
    "mcp_stdio",
    "cuda",
}
SUBSYSTEMS = {"database", "vault", "index", "jobs", "credentials", "models", "runtime"}


@pytest.mark.proves("host.health.open", "host.health.minimal")
def test_health_is_open_and_says_only_that_it_lives(serving: Serving) -> None:
    for headers in ([], [("Authorization", "Bearer wrong")], [("Origin", "tauri://localhost")]):
        answer = serving.request("GET", "/health", headers=headers)
        assert answer.status == 200
        assert answer.json() == {"status": "ok"}
        told = {name.lower() for name, _ in answer.headers}
        assert "server" not in told
        assert not any("version" in name for name in told)


@pytest.mark.proves("host.system.info")
def test_the_info(serving: Serving) -> None:
    answer = serving.get("/api/system/info")
    assert answer.status == 200
    info = answer.json()
    assert set(info) == {
        "version",
        "protocol",
        "platform",
        "environment",
        "data_directories",
        "capabilities",
    }
    assert (info["version"], info["protocol"], info["environment"]) == (VERSION, 1, "production")
    assert info["platform"]


@pytest.mark.proves("host.system.info-directories")
def test_the_info_tells_the_state_of_each_folder(start: Start, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    sidecar = start()
    before = sidecar.get("/api/system/info").json()["data_directories"]
    assert set(before) == DIRECTORIES
    closed = {"configured": False, "exists": False, "writable": False, "free_bytes": None}
    assert before["vault"] == closed
    assert sidecar.host_post("/host/vault", {"path": str(vault)}).status == 200
    answer = sidecar.get("/api/system/info")
    for name in ("data", "vault", "models", "exports", "logs"):
        state = answer.json()["data_directories"][name]
        assert set(state) == {"configured", "exists", "writable", "free_bytes"}
        assert state["configured"] is state["exists"] is state["writable"] is True
        assert state["free_bytes"] > 0
    runtime = answer.json()["data_directories"]["runtime"]
    assert (runtime["configured"], runtime["exists"]) == (True, False)
    assert str(tmp_path) not in answer.body.decode()


@pytest.mark.proves("host.system.info-directories")
def test_a_folder_that_is_read_only_shows_as_such(
    start: Start, tmp_path: Path, unprivileged: tuple[str, ...]
) -> None:
    sidecar = start(command=unprivileged)
    (sidecar.data_dir / "exports").chmod(0o500)
    shutil.rmtree(sidecar.data_dir / "models")
    states = sidecar.get("/api/system/info").json()["data_directories"]
    assert (states["exports"]["exists"], states["exports"]["writable"]) == (True, False)
    assert (states["models"]["exists"], states["models"]["writable"]) == (False, False)


@pytest.mark.proves("host.system.info-capabilities")
def test_the_info_tells_what_can_be_done(start: Start, serving: Serving) -> None:
    without_model = start().get("/api/system/info").json()["capabilities"]
    with_model = serving.get("/api/system/info").json()["capabilities"]
    for capabilities in (without_model, with_model):
        assert set(capabilities) == CAPABILITIES
        for state in capabilities.values():
            assert set(state) == {"available", "reason"}
            assert (state["reason"] is None) is state["available"]
            assert state["reason"] is None or state["reason"] in ERRORS
    assert without_model["transcription"] == {
        "available": False,
        "reason": "LOCAL_MODEL_NOT_INSTALLED",
    }
    assert with_model["transcription"] == {"available": True, "reason": None}


@pytest.mark.proves("host.system.health")
def test_the_health_of_each_part(serving: Serving) -> None:
    answer = serving.get("/api/system/health")
    assert answer.status == 200
    health = answer.json()
    assert set(health) == {"status", "subsystems"}
    assert set(health["subsystems"]) >= SUBSYSTEMS
    for name, state in health["subsystems"].items():
        assert set(state) == {"status", "code", "message"}, name
        if state["status"] == "ok":
            assert state["code"] is state["message"] is None
        else:
            assert state["code"] in ERRORS
            assert state["message"]
    for name in ("database", "vault", "index", "jobs", "credentials", "models"):
        assert health["subsystems"][name]["status"] == "ok"
    # What was never installed is told, and is no fault.
    assert health["subsystems"]["runtime"]["status"] == "unavailable"
    assert health["status"] == "ok"


def _health(sidecar: Serving) -> dict[str, Any]:
    answer = sidecar.get("/api/system/health")
    assert answer.status == 200
    body: dict[str, Any] = answer.json()
    return body


@pytest.mark.proves("host.system.health-degraded")
def test_a_vault_that_is_gone_shows(start: Start, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    sidecar = start(settings={"vault_path": str(vault)})
    assert _health(sidecar)["subsystems"]["vault"]["status"] == "ok"
    vault.rmdir()
    health = _health(sidecar)
    assert health["status"] == "degraded"
    assert health["subsystems"]["vault"]["status"] == "degraded"
    assert health["subsystems"]["vault"]["code"] == "VAULT_UNAVAILABLE"
    assert str(tmp_path) not in str(health)
    vault.mkdir()
    eventually(lambda: _health(sidecar)["status"] == "ok", "the vault is back")


@pytest.mark.proves("host.system.health-degraded")
def test_a_database_that_is_read_only_shows(
    start: Start, tmp_path: Path, unprivileged: tuple[str, ...]
) -> None:
    sidecar = start(command=unprivileged)
    database = sidecar.data_dir / "app.db"
    database.chmod(0o400)
    health = _health(sidecar)
    assert health["status"] == "degraded"
    assert health["subsystems"]["database"]["code"] == "DATABASE_UNAVAILABLE"
    database.chmod(0o600)
    assert _health(sidecar)["subsystems"]["database"]["status"] == "ok"


@pytest.mark.proves("host.paths.status")
def test_the_host_status(serving: Serving) -> None:
    answer = serving.host_get("/host/status")
    assert answer.status == 200
    status = answer.json()
    assert status.pop("started_at").endswith("Z")
    assert status == {
        "pid": serving.pid,
        "port": serving.port,
        "version": VERSION,
        "protocol": 1,
        "data_dir": str(serving.data_dir),
        "vault_path": str(serving.folder / "vault"),
        "processes": [],
    }


@pytest.mark.proves("host.paths.status")
def test_the_host_status_lists_children(start: Start) -> None:
    sidecar = start(command=(sys.executable, "-m", "tests.host.working_sidecar"))
    work = sidecar.host_post("/host/trial/work", {"ignore_signals": False}).json()
    processes = sidecar.host_get("/host/status").json()["processes"]
    assert processes == [{"pid": work["worker_pid"], "kind": "worker:trial-plain"}]


# -- the vault ---------------------------------------------------------------------------------


@pytest.mark.proves("host.paths.vault", "host.paths.vault-persisted")
def test_the_chosen_vault_is_read_written_and_kept(start: Start, tmp_path: Path) -> None:
    vaults = [tmp_path / "first", tmp_path / "笔记 vault"]
    for vault in vaults:
        vault.mkdir()
    (vaults[1] / "there.md").write_text("# There before\n", encoding="utf-8")
    sidecar = start()
    assert sidecar.get("/api/notes").code == "VAULT_NOT_OPEN"
    for vault in vaults:
        answer = sidecar.host_post("/host/vault", {"path": str(vault)})
        assert answer.status == 200
        assert sidecar.host_get("/host/status").json()["vault_path"] == str(vault)
    created = sidecar.post("/api/notes", {"title": "Written", "content": "By the sidecar."})
    assert created.status == 201
    assert "By the sidecar." in (vaults[1] / created.json()["file_path"]).read_text("utf-8")
    assert list(vaults[0].rglob("*.md")) == []
    eventually(lambda: _titles(sidecar) == {"There before", "Written"}, "both notes are known")
    sidecar.close_stdin()
    assert sidecar.wait() == 0
    again = start()
    assert again.host_get("/host/status").json()["vault_path"] == str(vaults[1])
    eventually(lambda: _titles(again) == {"There before", "Written"}, "the notes are there")


def _titles(sidecar: Serving) -> set[str]:
    return {note["title"] for note in sidecar.get("/api/notes").json()["items"]}


@pytest.mark.proves("host.paths.vault-invalid")
@pytest.mark.parametrize(
    "path",
    ["notes", "./notes", "", "~/notes", "{folder}/missing", "{folder}/file", "{folder}/a\0b"],
)
def test_a_folder_that_is_none_leaves_the_old_vault(serving: Serving, path: str) -> None:
    (serving.folder / "file").write_text("text", encoding="utf-8")
    named = path.format(folder=serving.folder)
    answer = serving.host_post("/host/vault", {"path": named})
    assert (answer.status, answer.code) == (400, "VAULT_PATH_INVALID")
    assert serving.host_get("/host/status").json()["vault_path"] == str(serving.folder / "vault")
    assert serving.get("/api/notes").status == 200


@pytest.mark.proves("host.paths.vault-invalid")
def test_a_folder_that_cannot_be_read_leaves_the_old_vault(
    start: Start, tmp_path: Path, unprivileged: tuple[str, ...]
) -> None:
    for name in ("vault", "closed"):
        (tmp_path / name).mkdir()
    sidecar = start(command=unprivileged, settings={"vault_path": str(tmp_path / "vault")})
    (tmp_path / "closed").chmod(0)
    answer = sidecar.host_post("/host/vault", {"path": str(tmp_path / "closed")})
    (tmp_path / "closed").chmod(0o700)
    assert (answer.status, answer.code) == (400, "VAULT_PATH_INVALID")
    assert sidecar.host_get("/host/status").json()["vault_path"] == str(tmp_path / "vault")


# -- packages ----------------------------------------------------------------------------------


@pytest.mark.proves("host.paths.packages", "host.paths.packages-opaque")
def test_a_file_or_folder_gets_a_handle(serving: Serving, tmp_path: Path) -> None:
    package = tmp_path / "secret-name.zip"
    package.write_bytes(b"PK")
    handles = set()
    for path in (package, package, tmp_path):
        answer = serving.host_post("/host/packages", {"path": str(path)})
        assert answer.status == 201
        assert set(answer.json()) == {"package_id", "expires_at"}
        assert answer.json()["expires_at"].endswith("Z")
        handles.add(answer.json()["package_id"])
    assert len(handles) == 3
    for handle in handles:
        assert len(handle) >= 32
        assert "secret" not in handle
        for folded in (str(tmp_path), "secret-name"):
            assert folded not in handle


@pytest.mark.proves("host.paths.packages-invalid")
@pytest.mark.parametrize("path", ["a.zip", "./a.zip", "", "{folder}/missing.zip", "{folder}/a\0"])
def test_a_path_that_leads_nowhere_gets_no_handle(serving: Serving, path: str) -> None:
    named = path.format(folder=serving.folder)
    answer = serving.host_post("/host/packages", {"path": named})
    assert (answer.status, answer.code) == (400, "PACKAGE_PATH_INVALID")
    assert "package_id" not in answer.body.decode()


@pytest.mark.proves("host.paths.missing-field")
@pytest.mark.parametrize("path", ["/host/vault", "/host/packages"])
@pytest.mark.parametrize("body", [{}, {"path": None}, {"path": 5}, {"path": ["/"]}, [], "/", None])
def test_a_body_without_a_path_is_refused(serving: Serving, path: str, body: Any) -> None:
    answer = serving.host_post(path, body)
    assert (answer.status, answer.code) == (422, "VALIDATION_ERROR")


# -- where real paths may show ------------------------------------------------------------------


@pytest.mark.proves("host.paths.real-paths-only-here")
def test_no_answer_of_the_api_shows_a_real_path(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "very-telling-name"
    (folder / "vault").mkdir(parents=True)
    sidecar = start(
        folder, arguments=MODEL_ARGUMENTS, settings={"vault_path": str(folder / "vault")}
    )
    sidecar.post("/api/notes", {"title": "A", "content": "b"})
    operations = sidecar.get("/openapi.json").json()["paths"]
    for path, item in operations.items():
        if not path.startswith("/api/") or path == "/api/system/shutdown":
            continue
        for method in item:
            named = path.replace("{", "").replace("}", "")
            for body in (None, {"path": str(folder)}, {"content": 5}):
                answer = sidecar.request(
                    method.upper(), named, token=sidecar.tokens.session, json_body=body
                )
                shown = answer.body.decode("utf-8", "replace") + repr(answer.headers)
                # What the client itself sent may come back in a validation error's place only.
                assert "very-telling-name" not in shown, (method, path, shown)
                assert f"{Path.home()}{os.sep}" not in shown
    assert "very-telling-name" in sidecar.host_get("/host/status").body.decode()
