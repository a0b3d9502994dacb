"""The tables of model routing."""

from dataclasses import dataclass

from sidecar.kernel.database import Readable, Transaction
from sidecar.model_routing.schemas import (
    AudioRoute,
    EmbeddingRoute,
    ModelRoutingConfig,
    RoutedCapability,
)


@dataclass(frozen=True, slots=True)
class StoredRouting:
    """The configuration, and since which version each route is what it is."""

    config: ModelRoutingConfig
    route_versions: dict[RoutedCapability, int]


def get(conn: Readable) -> StoredRouting:
    """Return what is configured."""
    version = conn.execute("SELECT version FROM model_routing").fetchone()["version"]
    embedding: EmbeddingRoute | None = None
    audio: dict[RoutedCapability, AudioRoute] = {}
    versions: dict[RoutedCapability, int] = {}
    for row in conn.execute("SELECT * FROM model_routes").fetchall():
        values = {name: row[name] for name in ("provider_id", "model", "endpoint")}
        capability: RoutedCapability = row["capability"]
        versions[capability] = row["version"]
        if capability == "embedding":
            embedding = EmbeddingRoute(**values, dimensions=row["dimensions"])
        else:
            audio[capability] = AudioRoute(**values)
    config = ModelRoutingConfig(
        version=version,
        embedding=embedding,
        transcription=audio.get("transcription"),
        speaker_matching=audio.get("speaker_matching"),
    )
    return StoredRouting(config, versions)


def put(tx: Transaction, config: ModelRoutingConfig) -> None:
    """Store a whole configuration with its new version."""
    former = get(tx)
    before = former.config.routes()
    tx.execute("DELETE FROM model_routes")
    for capability, route in config.routes().items():
        kept = before.get(capability) == route
        version = former.route_versions[capability] if kept else config.version
        tx.execute(
            "INSERT INTO model_routes (capability, provider_id, model, endpoint, dimensions, version)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (
                capability,
                route.provider_id,
                route.model,
                route.endpoint,
                route.dimensions,
                version,
            ),
        )
    tx.execute("UPDATE model_routing SET version = ?", (config.version,))


def leads_to(conn: Readable, provider_id: str) -> bool:
    """Whether a route leads to a provider."""
    found = conn.execute("SELECT 1 FROM model_routes WHERE provider_id = ?", (provider_id,))
    return found.fetchone() is not None
