"""Builds the application: the one place that knows every domain."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fastapi import Depends, FastAPI

from host_bridge.protocol import SessionSettings
from sidecar.chat import router as chat_router
from sidecar.chat.service import ChatService
from sidecar.credentials import router as credentials_router
from sidecar.credentials.service import CredentialService
from sidecar.documents.service import DocumentService
from sidecar.export import router as export_router
from sidecar.export.service import ExportService
from sidecar.kernel.body_limit import MEBIBYTE, BodyLimit, BodyLimitMiddleware
from sidecar.kernel.credentials import CredentialStore
from sidecar.kernel.database import Database
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.events import EventLog
from sidecar.kernel.http_errors import install_error_handlers
from sidecar.kernel.jobs import JobEngine
from sidecar.kernel.json_body import refuse_unstorable_json
from sidecar.kernel.logging import get_logger
from sidecar.kernel.openapi import openapi_document
from sidecar.kernel.security import SecurityGate, SecurityMiddleware
from sidecar.kernel.settings import Settings, resolve_settings
from sidecar.kernel.workers import WorkerPool
from sidecar.local_models import router as local_models_router
from sidecar.local_models.service import (
    AttemptLog,
    InstalledModels,
    LocalModels,
    LocalModelService,
    ModelLibrary,
)
from sidecar.media import router as media_router
from sidecar.media.routed import RoutedSpeakerMatcher, RoutedTranscriber
from sidecar.media.service import AttachmentUser, LocalParts, MediaService
from sidecar.model_routing import router as model_routing_router
from sidecar.model_routing.schemas import RoutedCapability
from sidecar.model_routing.service import LocalModelId, ModelRoutingService
from sidecar.plots import router as plots_router
from sidecar.plots.service import PlotService
from sidecar.providers import router as providers_router
from sidecar.providers.service import ProviderService, RoutedCalls
from sidecar.retrieval import router as retrieval_router
from sidecar.retrieval.indexer import SearchIndexer
from sidecar.retrieval.local_embedder import LocalModelSource
from sidecar.retrieval.mentions import notes_naming
from sidecar.retrieval.routed_models import RoutedModelSource, local_embedding
from sidecar.retrieval.service import RetrievalService
from sidecar.retrieval.vocabulary import NoteVocabulary
from sidecar.retrieval.wiring import build_retrieval
from sidecar.runtime import router as runtime_router
from sidecar.runtime.inference import LocalInference
from sidecar.runtime.service import RuntimeService
from sidecar.system import router as system_router
from sidecar.system.service import Check, SystemService
from sidecar.tasks import router as tasks_router
from sidecar.tasks.service import TaskService
from sidecar.usage import router as usage_router
from sidecar.usage.service import UsageLedger, UsageService
from sidecar.vault import router as vault_router
from sidecar.vault.service import VaultService
from sidecar.version import VERSION

if TYPE_CHECKING:
    from starlette.types import ASGIApp

log = get_logger(__name__)

DESCRIPTION: Final = (
    "The local engine of a notes app. Every path but /health needs `Authorization: Bearer <token>`. "
    "Errors have one shape; clients branch on `error.code` alone. Jobs answer 202 at once and tell "
    "their progress through `…/events`, which resumes with `Last-Event-ID`."
)

BODY_LIMITS: Final[dict[str, BodyLimit]] = {
    # An open file of 2,000,000 characters in JSON, with every character escaped that can be, and a
    # history as long as that.
    "/api/chat": BodyLimit(48 * MEBIBYTE),
    # A text of 200,000 characters and the pictures of its diagrams, in JSON.
    "/api/exports": BodyLimit(32 * MEBIBYTE),
    # 8 MiB of text in JSON, with every character escaped that can be.
    "/api/notes": BodyLimit(48 * MEBIBYTE),
}
"""Path → the largest body it takes; it holds for the paths below it too."""
UPLOADS: Final = "/api/media/attachments"


def body_limits(services: "Services") -> dict[str, BodyLimit]:
    """Return :data:`BODY_LIMITS` with those that the user's settings decide."""
    # A multipart body is a little larger than the file in it.
    largest = services.media.attachments.size_limit + MEBIBYTE // 16
    return {**BODY_LIMITS, UPLOADS: BodyLimit(largest, "ATTACHMENT_TOO_LARGE")}


@dataclass(slots=True)
class Services:
    """Everything that lives as long as the server does."""

    settings: Settings
    gate: SecurityGate
    database: Database
    events: EventLog
    jobs: JobEngine
    workers: WorkerPool
    credentials: CredentialStore
    exports: ExportService
    plots: PlotService
    media: MediaService
    vault: VaultService
    retrieval: RetrievalService
    tasks: TaskService
    usage: UsageService
    ledger: UsageLedger
    providers: ProviderService
    routing: ModelRoutingService
    chat: ChatService
    runtime: RuntimeService
    local_models: LocalModelService
    system: SystemService

    async def start(self) -> None:
        """Open what is needed before the first request is answered."""
        self.settings.paths.empty_temporary()
        self.database.open()
        await self.chat.start()
        await self.vault.restore(self.settings.vault_path)

    async def start_background(self) -> None:
        """Take up the work of an earlier run, once requests are answered."""
        await self.vault.start()
        await asyncio.to_thread(self.local_models.prepare)
        await self.jobs.start()
        await self.retrieval.start()
        await self.exports.start()
        await self.media.start()
        await self.runtime.start()

    async def close(self) -> None:
        """End streams, work and children, and leave the database whole."""
        self.gate.stopping = True
        self.events.close()
        await self.chat.close()
        await self.providers.calls.close()
        await self.runtime.close()
        await self.exports.close()
        await self.media.close()
        await self.jobs.stop()
        await self.local_models.close()
        await self.retrieval.close()
        # Whoever asks a provider has been stopped by now: nobody takes the end for its failure.
        await self.providers.close()
        await self.vault.close()
        await self.workers.close()

    async def close_database(self) -> None:
        """Close the database once no request can need it."""
        await self.database.close()


def _unavailable(code: str) -> Check:
    async def check() -> None:
        raise ProjectError(code)

    return check


def _routed_or(
    routing: ModelRoutingService, capability: RoutedCapability, check_local: Check
) -> Check:
    """Return a check that is content with a provider, and else asks for the local model."""

    async def check() -> None:
        if not await routing.is_routed(capability):
            await check_local()

    return check


def _local_model_names(
    models: LocalModels, embedders: LocalModelSource, installed: InstalledModels
) -> dict[RoutedCapability, LocalModelId]:
    """Return what tells for each capability which local model would be used."""

    async def embedding() -> str | None:
        embedder = await embedders.local()
        return embedder.space.model_id if embedder else None

    async def transcription() -> str | None:
        model = await models.speech_model()
        return model.name if model and not model.damaged else None

    async def speaker_matching() -> str | None:
        model = await installed.installed("speaker_matching")
        return model.model_id if model and not model.damaged else None

    return {
        "embedding": embedding,
        "transcription": transcription,
        "speaker_matching": speaker_matching,
    }


def build_services(settings: Settings) -> Services:
    """Wire the services of one run together; nothing is opened or started yet."""
    gate = SecurityGate(settings.session_token, settings.host_token, settings.development)
    database = Database(settings.paths.database)
    events = EventLog(database)
    jobs = JobEngine(database, events)
    workers = WorkerPool()
    credentials = CredentialStore(settings.paths.credentials)
    indexer = SearchIndexer()
    vault = VaultService(database, indexer)
    models_dirs = (settings.paths.models, *settings.extra_models)
    models = LocalModels(models_dirs)
    library = ModelLibrary(settings.paths.models, models)
    installed = InstalledModels(library)
    embedders = LocalModelSource(
        models_dirs,
        workers,
        models.files.is_unchanged,
        library.rank,
        note=AttemptLog(database).submit,
    )
    ledger = UsageLedger(database)
    providers = ProviderService(database, credentials, ledger, development=settings.development)
    routing = ModelRoutingService(
        database,
        providers,
        RoutedCalls(providers.lookup, providers.transport, ledger),
        ledger,
        local_models=_local_model_names(models, embedders, installed),
        local_embedding=lambda: local_embedding(embedders),
    )
    vectors_dir = settings.paths.root / "vectors"
    routed_embedders = RoutedModelSource(embedders, routing, database)
    retrieval = build_retrieval(database, jobs, vault, indexer, routed_embedders, vectors_dir)
    routing.on_change(retrieval.models_changed)
    tasks = TaskService(database, vault)
    exports = ExportService(
        database,
        jobs,
        vault,
        settings.paths,
        workers,
        font_folders=[
            folder / "fonts" for folder in (settings.paths.models, *settings.extra_models)
        ],
    )
    inference = LocalInference(jobs, retrieval.check_model)
    runtime = RuntimeService(database, events, settings.paths.runtime, inference.in_use)
    media = MediaService(
        database,
        events,
        jobs,
        workers,
        settings.paths,
        vault=vault,
        local=LocalParts(models, installed, runtime),
        ledger=ledger,
    )
    media.use_remote(RoutedTranscriber(routing))
    media.use_remote_matcher(RoutedSpeakerMatcher(routing))
    inference.watch(media.matches_speakers_now)
    media.listen_for(NoteVocabulary(database))
    media.attachments.add_user(AttachmentUser("note", notes_naming))
    documents = DocumentService(settings.paths, workers)
    chat = ChatService(database, providers, retrieval, media, documents)

    async def embedding_models_in_use() -> set[Path]:
        folder = await embedders.embedding_folder() if await inference.index_in_work() else None
        return embedders.folders_at_work() | ({folder} if folder else set())

    async def credentials_usable() -> None:
        await asyncio.to_thread(credentials.backend)

    async def always_there(_: str) -> None:
        return

    async def jobs_usable() -> None:
        await jobs.counts()

    system = SystemService(
        settings,
        gate,
        database,
        workers,
        vault,
        capabilities={
            "transcription": _routed_or(
                routing, "transcription", media.transcriptions.check_usable
            ),
            "diarization": media.diarizer.check_usable,
            "speaker_matching": _routed_or(
                routing, "speaker_matching", media.speaker_matching.check_usable
            ),
            "embedding": retrieval.check_model,
            "pdf_export": exports.check_pdf,
            "mcp_stdio": _unavailable("CAPABILITY_NOT_AVAILABLE"),
            "cuda": runtime.check_cuda,
        },
        health_checks={
            "vault": vault.check_usable,
            "index": retrieval.check_usable,
            "jobs": jobs_usable,
            "credentials": credentials_usable,
            "models": media.transcriptions.check_usable,
            "runtime": runtime.check_usable,
        },
        ticket_paths={
            r"/api/exports/([^/]+)/file": exports.download,
            r"/api/media/attachments/([^/]+)/content": media.attachments.file,
            r"/api/usage/(export)": always_there,
        },
    )
    local_models = LocalModelService(
        database,
        events,
        jobs,
        credentials,
        system.packages,
        library,
        used=(media.models_in_use, embedding_models_in_use),
    )
    return Services(
        settings,
        gate,
        database,
        events,
        jobs,
        workers,
        credentials,
        exports,
        PlotService(),
        media,
        vault,
        retrieval,
        tasks,
        UsageService(database),
        ledger,
        providers,
        routing,
        chat,
        runtime,
        local_models,
        system,
    )


def build_api(services: Services, request_stop: Callable[[], None]) -> FastAPI:
    """Return the FastAPI application with every route, without the security layer."""
    api = FastAPI(
        title="NotesAgent Sidecar",
        version=VERSION,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        generate_unique_id_function=lambda route: route.name,
        dependencies=[Depends(refuse_unstorable_json)],
    )
    install_error_handlers(api)
    api.include_router(system_router.build_router(services.system, request_stop))
    api.include_router(credentials_router.build_router(CredentialService(services.credentials)))
    api.include_router(export_router.build_router(services.exports))
    api.include_router(plots_router.build_router(services.plots))
    api.include_router(media_router.build_router(services.media))
    api.include_router(vault_router.build_router(services.vault))
    api.include_router(retrieval_router.build_router(services.retrieval))
    api.include_router(tasks_router.build_router(services.tasks))
    api.include_router(chat_router.build_router(services.chat))
    api.include_router(usage_router.build_router(services.usage))
    api.include_router(model_routing_router.build_router(services.routing))
    api.include_router(runtime_router.build_router(services.runtime))
    api.include_router(local_models_router.build_router(services.local_models))
    api.include_router(providers_router.build_router(services.providers))

    def openapi() -> dict[str, Any]:
        if api.openapi_schema is None:
            api.openapi_schema = openapi_document(api, body_limits(services))
        return api.openapi_schema

    api.openapi = openapi  # type: ignore[method-assign]
    return api


def build_asgi(services: Services, request_stop: Callable[[], None]) -> "ASGIApp":
    """Return the whole application, as it is served."""
    api = build_api(services, request_stop)
    return SecurityMiddleware(BodyLimitMiddleware(api, body_limits(services)), services.gate)


def offline_openapi() -> dict[str, Any]:
    """Return the OpenAPI document without a data directory or a running server."""
    settings = resolve_settings(SessionSettings(), data_dir=Path("unused"))
    return build_api(build_services(settings), lambda: None).openapi()
