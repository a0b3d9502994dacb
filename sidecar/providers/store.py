"""The tables of providers, and of what they said of their models."""

import json
import sqlite3
from collections.abc import Iterable
from typing import Any, Final

from sidecar.kernel.database import Readable, Transaction
from sidecar.kernel.paging import PageQuery
from sidecar.providers.schemas.wire import ModelInfo, Provider

_JSON: Final = ("capabilities", "request_overrides")


def _provider(row: sqlite3.Row) -> Provider:
    values: dict[str, Any] = dict(row)
    for name in _JSON:
        values[name] = json.loads(values[name])
    return Provider(**values, credential_configured=False)


def _row(provider: Provider) -> dict[str, Any]:
    values = provider.model_dump(exclude={"credential_configured"}, exclude_unset=False)
    for name in _JSON:
        values[name] = json.dumps(values[name], ensure_ascii=False)
    return values


def insert(tx: Transaction, provider: Provider) -> None:
    """Insert a provider."""
    tx.execute(
        "INSERT INTO providers (provider_id, name, provider_type, base_url, credential_id,"
        " default_model, capabilities, enabled, request_overrides, created_at, updated_at)"
        " VALUES (:provider_id, :name, :provider_type, :base_url, :credential_id, :default_model,"
        " :capabilities, :enabled, :request_overrides, :created_at, :updated_at)",
        _row(provider),
    )


def update(tx: Transaction, provider: Provider) -> None:
    """Store a changed provider."""
    tx.execute(
        "UPDATE providers SET name = :name, provider_type = :provider_type, base_url = :base_url,"
        " credential_id = :credential_id, default_model = :default_model,"
        " capabilities = :capabilities, enabled = :enabled,"
        " request_overrides = :request_overrides, updated_at = :updated_at"
        " WHERE provider_id = :provider_id",
        _row(provider),
    )


def get(conn: Readable, provider_id: str) -> Provider | None:
    """Return a provider; whether its secret is configured isn't known here."""
    row = conn.execute("SELECT * FROM providers WHERE provider_id = ?", (provider_id,)).fetchone()
    return _provider(row) if row else None


def delete(tx: Transaction, provider_id: str) -> bool:
    """Delete a provider; False if there is none."""
    return tx.execute("DELETE FROM providers WHERE provider_id = ?", (provider_id,)).rowcount > 0


def page(conn: Readable, query: PageQuery) -> tuple[list[Provider], int]:
    """Return a page of providers, oldest first, and how many there are."""
    total = conn.execute("SELECT count(*) FROM providers").fetchone()[0]
    rows = conn.execute(
        "SELECT * FROM providers ORDER BY created_at, provider_id LIMIT ? OFFSET ?",
        (query.limit, query.offset),
    )
    return [_provider(row) for row in rows], total


def keep_models(tx: Transaction, provider_id: str, models: Iterable[ModelInfo]) -> None:
    """Replace what a provider said of its models; nothing is kept for one that is gone."""
    forget_models(tx, provider_id)
    if get(tx, provider_id) is None:
        return
    tx.executemany(
        "INSERT OR REPLACE INTO provider_models (provider_id, model, info) VALUES (?, ?, ?)",
        ((provider_id, model.model, model.model_dump_json()) for model in models),
    )


def forget_models(tx: Transaction, provider_id: str) -> None:
    """Forget what a provider said of its models."""
    tx.execute("DELETE FROM provider_models WHERE provider_id = ?", (provider_id,))


def model(conn: Readable, provider_id: str, name: str) -> ModelInfo | None:
    """Return what a provider said of a model."""
    row = conn.execute(
        "SELECT info FROM provider_models WHERE provider_id = ? AND model = ?", (provider_id, name)
    ).fetchone()
    return ModelInfo.model_validate_json(row["info"]) if row else None
