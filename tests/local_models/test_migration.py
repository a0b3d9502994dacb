"""What an earlier version stored of a model's downloads is still shown."""

import sqlite3
from pathlib import Path

import pytest

from sidecar.kernel import migrations
from tests.app_client import running_app
from tests.local_models.conftest import MODEL, write_catalogue

BEFORE = 10
NOW = "2026-11-01T08:00:00.000Z"


@pytest.mark.proves("local-models.list.download-field")
async def test_a_download_of_an_earlier_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    write_catalogue(data / "models", [])
    scripts = [each for each in migrations.migration_scripts() if each[0] <= BEFORE]
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "migration_scripts", lambda: scripts)
        migrations.migrate(data / "app.db")
    with sqlite3.connect(data / "app.db") as database:
        database.execute(
            "INSERT INTO jobs (job_id, kind, status, request, error_code, error_details, created_at,"
            " updated_at, completed_at, facet) VALUES ('transfer_1', 'model_download', 'failed', ?,"
            " 'MODEL_DOWNLOAD_FAILED', '{}', ?, ?, ?, ?)",
            (f'{{"model_id": "{MODEL}"}}', NOW, NOW, NOW, MODEL),
        )
        database.execute(
            "INSERT INTO model_transfers VALUES (?, 'transfer_1', 'model_download', 0)", (MODEL,)
        )
    database.close()
    async with running_app(tmp_path, models_dirs=()) as app:
        items = (await app.http.get("/api/local-models", params={"limit": 200})).json()["items"]
    model = next(item for item in items if item["model_id"] == MODEL)
    assert model["verification"] is None
    assert model["download"]["status"] == "failed"
    assert model["download"]["error"]["code"] == "MODEL_DOWNLOAD_FAILED"
