"""Puts the services of one run together: the one place that knows what each of them needs."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from sidecar.chat.service import ChatService
from sidecar.documents.service import DocumentService
from sidecar.export.service import ExportService
from sidecar.kernel.credentials import CredentialStore
from sidecar.kernel.database import Database
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.events import EventLog
from sidecar.kernel.http.security import SecurityGate
from sidecar.kernel.jobs.engine import JobEngine
from sidecar.kernel.settings import Settings
from sidecar.kernel.workers.client import WorkerPool
from sidecar.local_models.service import (
    AttemptLog,
    InstalledModels,
    LocalModels,
    LocalModelService,
    ModelLibrary,
)
from sidecar.media.routed import RoutedSpeakerMatcher, RoutedTranscriber
from sidecar.media.service import AttachmentUser, LocalParts, MediaService
from sidecar.model_routing.schemas import RoutedCapability
from sidecar.model_routing.service import LocalModelId, ModelRoutingService
from sidecar.plots.service import PlotService
from sidecar.providers.service import ProviderService, RoutedCalls
from sidecar.retrieval.indexer import SearchIndexer
from sidecar.retrieval.mentions import notes_naming
from sidecar.retrieval.models.local import LocalModelSource
from sidecar.retrieval.models.routed import RoutedModelSource, local_embedding
from sidecar.retrieval.service import RetrievalService
from sidecar.retrieval.vocabulary import NoteVocabulary
from sidecar.retrieval.wiring import build_retrieval
from sidecar.runtime.inference import LocalInference
from sidecar.runtime.service import RuntimeService
from sidecar.system.service import Check, SystemService
from sidecar.tasks.service import TaskService
from sidecar.usage.service import UsageLedger, UsageService
from sidecar.vault.service import VaultService


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


@dataclass(frozen=True, slots=True)
class _Core:
    """What every domain stands on."""

    settings: Settings
    gate: SecurityGate
    database: Database
    events: EventLog
    jobs: JobEngine
    workers: WorkerPool
    credentials: CredentialStore


@dataclass(frozen=True, slots=True)
class _Models:
    """The models of this machine, and who finds them."""

    speech: LocalModels
    library: ModelLibrary
    installed: InstalledModels
    embedders: LocalModelSource

    async def embedding_id(self) -> str | None:
        """Return the embedding model that would be used."""
        embedder = await self.embedders.local()
        return embedder.space.model_id if embedder else None

    async def speech_id(self) -> str | None:
        """Return the speech model that would be used."""
        model = await self.speech.speech_model()
        return model.name if model and not model.damaged else None

    async def speaker_id(self) -> str | None:
        """Return the speaker model that would be used."""
        model = await self.installed.installed("speaker_matching")
        return model.model_id if model and not model.damaged else None


def build_services(settings: Settings) -> Services:
    """Wire the services of one run together; nothing is opened or started yet."""
    core = _build_core(settings)
    database = core.database
    models = _build_models(core)
    ledger = UsageLedger(database)
    providers = ProviderService(
        database, core.credentials, ledger, development=settings.development
    )
    routing = _build_routing(database, providers, ledger, models)
    indexer = SearchIndexer()
    vault = VaultService(database, indexer)
    retrieval = build_retrieval(
        database,
        core.jobs,
        vault,
        indexer,
        RoutedModelSource(models.embedders, routing, database),
        settings.paths.root / "vectors",
    )
    routing.on_change(retrieval.models_changed)
    fonts = [folder / "fonts" for folder in (settings.paths.models, *settings.extra_models)]
    exports = ExportService(
        database, core.jobs, vault, settings.paths, core.workers, font_folders=fonts
    )
    inference = LocalInference(core.jobs, retrieval.check_model)
    runtime = RuntimeService(database, core.events, settings.paths.runtime, inference.in_use)
    parts = LocalParts(models.speech, models.installed, runtime)
    media = _build_media(core, vault, parts, routing, ledger)
    inference.watch(media.matches_speakers_now)
    inference.watch(lambda: bool(models.embedders.folders_at_work()))
    documents = DocumentService(settings.paths, core.workers)
    system = _build_system(core, vault, retrieval, exports, media, routing, runtime)
    return Services(
        settings=settings,
        gate=core.gate,
        database=database,
        events=core.events,
        jobs=core.jobs,
        workers=core.workers,
        credentials=core.credentials,
        exports=exports,
        plots=PlotService(),
        media=media,
        vault=vault,
        retrieval=retrieval,
        tasks=TaskService(database, vault),
        usage=UsageService(database),
        ledger=ledger,
        providers=providers,
        routing=routing,
        chat=ChatService(database, providers, retrieval, media, documents),
        runtime=runtime,
        local_models=_build_local_models(core, models, media, inference, system),
        system=system,
    )


def _build_core(settings: Settings) -> _Core:
    database = Database(settings.paths.database)
    events = EventLog(database)
    return _Core(
        settings,
        SecurityGate(settings.session_token, settings.host_token, settings.development),
        database,
        events,
        JobEngine(database, events),
        WorkerPool(),
        CredentialStore(settings.paths.credentials),
    )


def _build_models(core: _Core) -> _Models:
    folders = (core.settings.paths.models, *core.settings.extra_models)
    speech = LocalModels(folders)
    library = ModelLibrary(core.settings.paths.models, speech)
    embedders = LocalModelSource(
        folders,
        core.workers,
        speech.files.is_unchanged,
        library.rank,
        note=AttemptLog(core.database).submit,
    )
    return _Models(speech, library, InstalledModels(library), embedders)


def _build_routing(
    database: Database, providers: ProviderService, ledger: UsageLedger, models: _Models
) -> ModelRoutingService:
    names: dict[RoutedCapability, LocalModelId] = {
        "embedding": models.embedding_id,
        "transcription": models.speech_id,
        "speaker_matching": models.speaker_id,
    }
    return ModelRoutingService(
        database,
        providers,
        RoutedCalls(providers.lookup, providers.transport, ledger),
        ledger,
        local_models=names,
        local_embedding=lambda: local_embedding(models.embedders),
    )


def _build_media(
    core: _Core,
    vault: VaultService,
    local: LocalParts,
    routing: ModelRoutingService,
    ledger: UsageLedger,
) -> MediaService:
    media = MediaService(
        core.database,
        core.events,
        core.jobs,
        core.workers,
        core.settings.paths,
        vault=vault,
        local=local,
        ledger=ledger,
    )
    media.use_remote(RoutedTranscriber(routing))
    media.use_remote_matcher(RoutedSpeakerMatcher(routing))
    media.listen_for(NoteVocabulary(core.database))
    media.attachments.add_user(AttachmentUser("note", notes_naming))
    return media


def _build_local_models(
    core: _Core,
    models: _Models,
    media: MediaService,
    inference: LocalInference,
    system: SystemService,
) -> LocalModelService:
    async def embedding_models_in_use() -> set[Path]:
        at_work = models.embedders.folders_at_work()
        if not await inference.index_in_work():
            return at_work
        folder = await models.embedders.embedding_folder()
        return at_work | ({folder} if folder else set())

    return LocalModelService(
        core.database,
        core.events,
        core.jobs,
        core.credentials,
        system.packages,
        models.library,
        used=(media.models_in_use, embedding_models_in_use),
    )


def _build_system(
    core: _Core,
    vault: VaultService,
    retrieval: RetrievalService,
    exports: ExportService,
    media: MediaService,
    routing: ModelRoutingService,
    runtime: RuntimeService,
) -> SystemService:
    async def credentials_usable() -> None:
        await asyncio.to_thread(core.credentials.backend)

    async def always_there(_: str) -> None:
        return

    async def jobs_usable() -> None:
        await core.jobs.counts()

    transcription = media.transcriptions.check_usable
    return SystemService(
        core.settings,
        core.gate,
        core.database,
        core.workers,
        vault,
        capabilities={
            "transcription": _routed_or(routing, "transcription", transcription),
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
            "models": transcription,
            "runtime": runtime.check_usable,
        },
        ticket_paths={
            r"/api/exports/([^/]+)/file": exports.download,
            r"/api/media/attachments/([^/]+)/content": media.attachments.file,
            r"/api/usage/(export)": always_there,
        },
    )


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
