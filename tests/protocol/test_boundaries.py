"""What must not cross the border: local paths, bodies that are too large, and secrets."""

import json
import os
import re
import sys
import urllib.parse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from sidecar.app import body_limits
from sidecar.kernel.http.body_limit import limit_of
from tests.protocol.conftest import Answers
from tests.protocol.live import LiveApp, error_of
from tests.protocol.operations import (
    BY_NAME,
    JSON_TYPE,
    OPERATIONS,
    WITH_JSON,
    Operation,
    schemas_of_properties,
    text_fields,
)
from tests.protocol.specimens import SPECIMENS, Request, Specimen
from tests.protocol.values import place_of, with_value

pytestmark = pytest.mark.usefixtures("no_real_work")

NONE = Specimen(0)

CANARY = "canary-content-41c7"
VAULT_PATHS = ("folder", "file_path")
CHUNK = b"a" * 65536


class Watch:
    """Notes every file and folder below one folder that this process opens, lists or changes."""

    def __init__(self) -> None:
        self.folder: str | None = None
        self.touched: list[tuple[str, str]] = []
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.folder is None or not event.startswith(("open", "os.", "shutil.")):
            return
        for argument in arguments:
            if isinstance(argument, str | bytes | os.PathLike):
                path = os.path.realpath(os.fsdecode(argument).rstrip("\0").split("\0")[0])
                if path.startswith(self.folder):
                    self.touched.append((event, path))


# A hook can't be taken out again: there is one for the whole run.
WATCH: Final = Watch()


@pytest.fixture
def outside(app: LiveApp) -> Iterator[Path]:
    """A folder that no request may reach, with a note in it; the vault has a link to it."""
    folder = app.folder.resolve().parent / "outside-the-vault"
    folder.mkdir()
    (folder / "canary.md").write_text(CANARY, encoding="utf-8")
    link = app.vault / "link"
    link.symlink_to(folder, target_is_directory=True)
    WATCH.folder = str(folder)
    yield folder
    WATCH.folder = None
    WATCH.touched.clear()
    link.unlink()
    (folder / "canary.md").unlink()
    folder.rmdir()


def escaping(outside: Path) -> list[str]:
    """Ways to name a file or folder that isn't in the vault."""
    return [
        str(outside / "canary.md"),
        str(outside),
        (outside / "canary.md").as_uri(),
        f"../../{outside.name}/canary.md",
        f"a/../../../{outside.name}",
        f"..\\..\\{outside.name}\\canary.md",
        f"./../../{outside.name}",
        f"{'../' * 30}{str(outside).lstrip('/')}/canary.md",
    ]


FOREIGN: Final = [
    "C:\\Windows\\win.ini",
    "C:notes",
    "\\\\server\\share\\x.md",
    "//server/share/x.md",
]


@pytest.mark.proves("protocol.paths.no-local-paths")
@pytest.mark.parametrize("operation", [o for o in WITH_JSON if not o.host_only], ids=str)
def test_no_text_names_a_local_file(
    answers: Answers, operation: Operation, outside: Path, app: LiveApp
) -> None:
    request = answers.request(operation)
    assert operation.json_schema is not None
    for place in set(text_fields(operation.json_schema, request.json)):
        for value in [*escaping(outside), *FOREIGN, "link/canary.md", "link", "~/canary.md"]:
            sent = with_value(request.json, place, value)
            answer = replace(request, json=sent).send(app.session, operation)
            # A provider that can't be asked is nobody's crash.
            asked = answer.status_code < 500 or answer.json()["error"]["code"].startswith(
                "PROVIDER_"
            )
            assert asked, (place, value, answer.text)
            check_untouched(outside, answer)


def check_untouched(outside: Path, answer: httpx.Response | None = None) -> None:
    """Check that nothing below the folder was opened, listed, made or shown."""
    assert WATCH.touched == []
    assert answer is None or CANARY not in answer.text
    WATCH.folder = None
    assert [path.name for path in outside.iterdir()] == ["canary.md"]
    assert (outside / "canary.md").read_text(encoding="utf-8") == CANARY
    WATCH.folder = str(outside)


@pytest.mark.proves("protocol.paths.no-local-paths")
@pytest.mark.parametrize(
    "operation",
    [o for o in OPERATIONS if not o.host_only and (o.parameters("path") or o.queries)],
    ids=str,
)
def test_no_address_names_a_local_file(
    answers: Answers, operation: Operation, outside: Path, app: LiveApp
) -> None:
    request, _ = answers.of(operation)
    for value in [*escaping(outside), *FOREIGN, "link/canary.md"]:
        for parameter in operation.parameters("path"):
            changed = replace(request, path={**request.path, parameter["name"]: value})
            answer = changed.send(app.session, operation)
            assert answer.status_code == 404, (value, answer.text)
            check_untouched(outside, answer)
        for name in operation.queries:
            changed = replace(request, query={**request.query, name: value})
            answer = changed.send(app.session, operation)
            assert answer.status_code < 500, (value, answer.text)
            check_untouched(outside, answer)


@pytest.mark.proves("protocol.paths.no-local-paths")
@pytest.mark.parametrize(
    "operation", [o for o in OPERATIONS if "multipart/form-data" in o.body_types], ids=str
)
def test_no_file_name_leads_out(
    answers: Answers, operation: Operation, outside: Path, app: LiveApp
) -> None:
    request = answers.request(operation)
    assert request.files is not None
    before = files_of(app)
    for value in [*escaping(outside), *FOREIGN]:
        files = {name: (f"{value}.flac", *rest) for name, (_, *rest) in request.files.items()}
        answer = replace(request, files=files).send(app.session, operation)  # type: ignore[arg-type]
        assert answer.status_code < 500, answer.text
        check_untouched(outside, answer)
        if answer.is_success:
            assert not set("/\\") & set(answer.json()["file_name"])
    assert all(path.is_relative_to(app.data_dir) for path in files_of(app) - before)


def files_of(app: LiveApp) -> set[Path]:
    """Every file of the application's folder, but for the database's own and the logs."""
    return {
        path
        for path in app.folder.rglob("*")
        if path.is_file() and not path.name.startswith(("app.db", "sidecar.log"))
    }


def vault_paths(operation: Operation, request: Request) -> list[tuple[str | int, ...]]:
    """Where a body takes a path inside the vault."""
    assert operation.json_schema is not None
    places = set(text_fields(operation.json_schema, request.json))
    return [
        place
        for place in places
        if place[-1] in VAULT_PATHS and place[-2:] != ("workspace_context", "file_path")
    ]


@pytest.mark.proves("protocol.paths.escaping-refused", "protocol.paths.no-local-paths")
@pytest.mark.parametrize("operation", [o for o in WITH_JSON if not o.host_only], ids=str)
def test_vault_paths_stay_inside(
    answers: Answers, operation: Operation, outside: Path, app: LiveApp
) -> None:
    request = answers.request(operation)
    before = files_of(app)
    for place in vault_paths(operation, request):
        is_filter = place[-1] in SPECIMENS[str(operation)].filters
        links = [] if is_filter else ["link", "link/deeper", "link/canary.md"]
        paths = [value for value in escaping(outside) if "://" not in value]
        for value in [*paths, *FOREIGN, "..", *links]:
            sent = with_value(request.json, place, value)
            answer = replace(request, json=sent).send(app.session, operation)
            assert answer.status_code == 422, (place, value, answer.text)
            error = error_of(answer)
            assert error["code"] == "VALIDATION_ERROR", (place, value)
            assert error["details"]["errors"][0]["loc"][-1] == place[-1], error
            check_untouched(outside, answer)
        assert files_of(app) == before


@pytest.mark.proves("protocol.paths.escaping-refused")
def test_there_are_vault_paths(answers: Answers) -> None:
    found = {
        (str(operation), place[-1])
        for operation in WITH_JSON
        for place in vault_paths(operation, answers.request(operation))
    }
    assert ("POST /api/notes", "folder") in found and ("POST /api/exports", "file_path") in found


@pytest.mark.proves("protocol.errors.body-too-large", "protocol.status.413")
@pytest.mark.parametrize("operation", [o for o in OPERATIONS if o.body_types], ids=str)
def test_body_too_large(answers: Answers, operation: Operation, app: LiveApp) -> None:
    request = answers.request(operation)
    limit = limit_of(operation.path, body_limits(app.services))
    before, total = files_of(app), total_of(app, operation)
    start, media_type = b'{"zz": "', JSON_TYPE
    if JSON_TYPE not in operation.body_types:
        start = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\nRIFF'
        media_type = "multipart/form-data; boundary=b"

    def body() -> Iterator[bytes]:
        yield start
        for _ in range(limit.size // len(CHUNK) + 1):
            yield CHUNK

    answer = answers.client(operation).request(
        operation.method,
        operation.address(request.path),
        content=body(),
        headers={"Content-Type": media_type},
    )
    assert answer.status_code == 413, answer.text
    assert error_of(answer)["code"] in operation.codes(413)
    assert files_of(app) == before and total_of(app, operation) == total


def total_of(app: LiveApp, operation: Operation) -> int | None:
    """How many items the list of this path has, None if there is no such list."""
    reading = BY_NAME.get(f"GET {operation.path}")
    if reading is None or not reading.is_list or "{" in operation.path:
        return None
    total: int = app.session.get(reading.path).raise_for_status().json()["page"]["total"]
    return total


SECRET_NAMES = re.compile(r"secret|password|passphrase|api_?key|token|cookie|private_key")


@pytest.mark.proves("protocol.secrets.not-in-output")
def test_every_field_for_a_secret_is_known() -> None:
    taking = {
        str(operation)
        for operation in WITH_JSON
        if any(SECRET_NAMES.search(name) for name in str(operation.json_schema).split("'"))
    }
    named = {name for name, specimen in SPECIMENS.items() if specimen.secrets}
    assert taking <= named, "name these fields in the specimens' `secrets`"


@pytest.mark.proves("protocol.secrets.not-in-output")
def test_secrets_are_in_no_output(answers: Answers, app: LiveApp) -> None:
    secret = "canary-secret-9f3b52"
    for operation in WITH_JSON:
        for dotted in SPECIMENS.get(str(operation), NONE).secrets:
            request = answers.request(operation)
            sent = with_value(request.json, place_of(dotted), secret)
            answer = replace(request, json=sent).send(answers.client(operation), operation)
            assert secret not in f"{answer.text} {answer.headers}"
    assert secret not in app.log_text
    for operation in OPERATIONS:
        if operation.method == "GET":
            answer = answers.request(operation).send(answers.client(operation), operation)
            assert secret not in answer.text


@pytest.mark.proves("protocol.secrets.not-in-output")
def test_tokens_are_written_nowhere(answers: Answers, app: LiveApp) -> None:
    for secret in app.secrets:
        # Where an address takes one, and where somebody puts one by mistake.
        app.session.get("/api/system/info", params={"token": secret, "api_key": secret})
        app.session.get(f"/api/notes/{secret}")
        app.session.post("/api/tickets", json={"path": f"/{secret}"})
        app.session.post("/api/search", json={"query": secret, "mode": secret})
        with httpx.Client(base_url=app.app.base_url, cookies={"session": secret}) as client:
            assert client.get("/api/notes").status_code == 401
            client.get("/", params={"token": secret})
    forms = {*app.secrets, *(urllib.parse.quote(secret) for secret in app.secrets)}
    written = [path.read_bytes() for path in app.folder.rglob("*") if path.is_file()]
    for form in forms:
        assert form not in app.log_text
        assert not any(form.encode() in content for content in written)


def test_no_model_shows_a_secret() -> None:
    """A property that sounds like a secret must be one of these: no secret, or only ever taken in."""
    known = {("Ticket", "url"), ("CredentialSecret", "secret")}
    found = {
        (model, name)
        for model, name, schema in schemas_of_properties()
        if SECRET_NAMES.search(name) and schema.get("type") == "string"
    }
    assert found <= known
    answers = json.dumps([operation.spec["responses"] for operation in OPERATIONS])
    assert "/CredentialSecret" not in answers
