"""The container of a worker process."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial

from config.paths import personal_workspace_of
from config.process import limit_threads, process_owner, thread_owner
from config.settings import Settings
from pipeline.bootstrap import mask
from pipeline.features.capture.stage import CaptureSettings
from pipeline.features.capture.usecases import capture_settings
from pipeline.features.entities.stage import SpacyTagger, Tagger
from pipeline.features.indexing.job import erase_deleted_turns
from pipeline.features.indexing.screen_stage import InjectionClassifier, ScreenStage
from pipeline.features.indexing.stage import EmbedStage
from pipeline.features.indexing.turns_stage import EmbedTurnsStage
from pipeline.features.maintenance.context import JobContext
from pipeline.features.purge.stage import PurgeStage
from pipeline.features.purge.usecases import finish_purges
from pipeline.features.snapshots.shared import shared_snapshots
from pipeline.index.dense import EXACT_ROWS, DenseIndex
from pipeline.index.encoder import ENGLISH, MULTILINGUAL, Encoder
from pipeline.index.encoders import (
    DocumentEncoders,
    choose_model,
    choose_statement_model,
    follows_languages,
    is_encoder_compiled,
)
from pipeline.index.storage import (
    all_turn_vector_tables,
    all_vector_tables,
    open_storage,
    shared_models,
    shared_segments,
    shared_turn_segments,
    turn_vector_table,
    vector_table,
)
from pipeline.index.vectors import VectorTable
from pipeline.kernel.errors import EncoderPending
from pipeline.kernel.lru import LruCache
from pipeline.kernel.records import Stage
from pipeline.kernel.records.recall import Answer, Channel, Query, Step
from pipeline.kernel.registry import features, load
from pipeline.kernel.stage_loop import DigestPolicy, StageRegistry
from pipeline.kernel.store.database import Database, WakeUps, WriterProfile, wake_no_worker
from pipeline.kernel.store.stores import open_stores
from pipeline.kernel.workspace import Workspace, WorkspaceSettings
from pipeline.sessions.stage import ConcludeStage
from pipeline.sessions.statements import StatementClassifier, StatementReader

CHECKPOINT_PAGES = 1_000
# Work items that a worker claims at once: enough for batches of the encoder, few enough to share with other workers.
WORK_BATCH = 64
# Workers alternate between workspaces; vectors stay loaded for the workspaces that they return to.
MOST_DENSE = 4


class WorkerContainer:
    """Everything that stages and jobs need, for every workspace; `on_commit` receives the work queued by commits."""

    def __init__(self, settings: Settings, on_commit: Callable[[str, WakeUps], None] = wake_no_worker) -> None:
        settings.paths.ensure()
        self.settings = settings
        self.process = process_owner()
        self.stores = open_stores(settings, WriterProfile("NORMAL", CHECKPOINT_PAGES), mask, on_commit)
        self.databases, self.operations = self.stores.databases, self.stores.operations
        self.workspace_settings = WorkspaceSettings(settings, self.stores)
        self.policy = DigestPolicy(WORK_BATCH, settings.lease_s, settings.backoff_s)
        self.objects = open_storage(settings)
        self.encoders = DocumentEncoders(settings, shared_models(settings, self.objects))
        self._dense: LruCache[str, tuple[Encoder, DenseIndex]] = LruCache(MOST_DENSE)
        self._statements: dict[str, StatementClassifier] = {}
        self._injections: dict[bool, InjectionClassifier] = {}
        # Threads that need the tagger wait for the first one to load it.
        self._loading = threading.Lock()

    @property
    def owner(self) -> str:
        """Return the name under which the calling thread claims work."""
        return thread_owner(self.process)

    @cached_property
    def tagger(self) -> Tagger:
        """Return the named-entity tagger."""
        # With only a cached property, each of several concurrent threads would load its own model.
        with self._loading:
            if "tagger" not in vars(self):
                vars(self)["tagger"] = SpacyTagger.load()
                limit_threads(self.settings.encoder_threads)
            loaded: Tagger = vars(self)["tagger"]
        return loaded

    def encoder(self, workspace_id: str) -> Encoder:
        """Return the encoder of a workspace's memories, compiling it on first use."""
        with self.databases.get(workspace_id).read() as db:
            model = choose_model(self.settings, db)
        return self.encoders.get(model)

    def vectors(self, workspace_id: str, encoder: Encoder | None = None) -> VectorTable:
        """Return the vector table of an encoder, by default of the one for a workspace's memories."""
        paths, database = self.settings.paths.workspace(workspace_id), self.databases.get(workspace_id)
        return vector_table(paths, database, encoder or self.encoder(workspace_id), self.objects)

    def turn_vectors(self, workspace_id: str, encoder: Encoder | None = None) -> VectorTable:
        """Return the vector table of turns of an encoder, by default of the one for a workspace's memories."""
        paths, database = self.settings.paths.workspace(workspace_id), self.databases.get(workspace_id)
        return turn_vector_table(paths, database, encoder or self.encoder(workspace_id), self.objects)

    def dense(self, workspace_id: str) -> DenseIndex:
        """Return a workspace's dense index, which adds new vectors automatically."""
        encoder = self.encoder(workspace_id)

        def make() -> tuple[Encoder, DenseIndex]:
            table = self.vectors(workspace_id, encoder)
            return encoder, DenseIndex(table, EXACT_ROWS, encoder.background)

        return self._dense.get(workspace_id, lambda known: known[0] is encoder, make)[1]

    def context(self, workspace_id: str) -> JobContext:
        """Return the context for the jobs of a workspace; raise NotFound for an unknown workspace."""
        paths, database = self.settings.paths.workspace(workspace_id), self.databases.get(workspace_id)
        return JobContext(
            self.workspace_settings.get(workspace_id),
            paths,
            database,
            partial(self.vectors, workspace_id),
            partial(self.turn_vectors, workspace_id),
            partial(self.encoder, workspace_id),
            partial(self.operations.record_error, workspace=workspace_id),
            shared_segments(paths, self.objects),
            shared_turn_segments(paths, self.objects),
            shared_snapshots(self.settings, paths, database, self.objects),
            partial(self._open_search, workspace_id),
        )

    @contextmanager
    def _open_search(self, workspace_id: str) -> Iterator[Callable[[Query], Answer]]:
        """Open a search as of a web server that starts now; its indexes stay in memory only as long."""
        from pipeline.recall.contexts import SearchContexts
        from pipeline.recall.search import search_uncached

        def report_error(workspace: Workspace, channel: Channel | Step, error: Exception) -> None:
            # No one waits for an answer: while an encoder is compiled, there is none.
            if not isinstance(error, EncoderPending):
                self.operations.record_error(f"recall.{channel}", str(error), workspace=workspace.id)

        contexts = SearchContexts(self.encoders.get, EXACT_ROWS, report_error, self.objects)
        try:
            yield partial(search_uncached, contexts.get(self.workspace(workspace_id)))
        finally:
            contexts.close()

    def stages(self, workspace_id: str) -> StageRegistry:
        """Return the stages of a workspace."""
        context, vectors = self.context(workspace_id), partial(self.vectors, workspace_id)
        embed = EmbedStage(
            context.database,
            vectors,
            partial(self.encoder, workspace_id),
            follows_languages(self.settings),
            screens=follows_languages(self.settings),
        )
        declared = ((Stage(name), module) for feature in features() for name, module in feature.stages.items())
        return {
            **{stage: load([module])[0].create_stage(self, workspace_id) for stage, module in declared},
            Stage.EMBED: embed,
            Stage.SCREEN: ScreenStage(context.database, partial(self._injection_classifier, workspace_id)),
            Stage.CONCLUDE: ConcludeStage(context.database, self.statement_reader(workspace_id)),
            Stage.EMBED_TURNS: EmbedTurnsStage(
                context.database, partial(self.turn_vectors, workspace_id), partial(self.encoder, workspace_id)
            ),
            Stage.PURGE: PurgeStage(
                context.database,
                partial(all_vector_tables, context.paths, context.database, self.objects),
                context.rebuild_segments,
                context.scrub_snapshots,
                partial(finish_purges, self.workspace(workspace_id)),
                partial(
                    erase_deleted_turns,
                    context.database,
                    all_turn_vector_tables(context.paths, context.database, self.objects),
                ),
            ),
        }

    def workspace(self, workspace_id: str) -> Workspace:
        """Return a workspace, which need not exist yet."""
        paths = self.settings.paths.workspace(workspace_id)
        return Workspace(workspace_id, paths, self.databases, self.workspace_settings)

    def capture_settings(self, workspace_id: str) -> CaptureSettings:
        """Return whether and how statements in a workspace are captured."""
        return capture_settings(self.workspace_settings, workspace_id)

    def statement_reader(self, workspace_id: str) -> StatementReader:
        """Return the reader of a workspace's sentences."""
        return StatementReader(partial(self._classifier, workspace_id))

    def create_personal(self, person_id: str | None) -> Database:
        """Return the store of a person, which is created if there is none."""
        return self.databases.get(personal_workspace_of(person_id), create=True)

    def find_personal(self, person_id: str | None) -> Database | None:
        """Return the store of a person, if there is one."""
        name = personal_workspace_of(person_id)
        return self.databases.get(name) if self.databases.exists(name) else None

    def _classifier(self, workspace_id: str, text: str) -> StatementClassifier:
        """Return the classifier of a text's sentences; raise EncoderPending while it is prepared."""
        with self.databases.get(workspace_id).read() as db:
            model = choose_statement_model(self.settings, db, text)
        encoder, folder = self.encoders.get(model), self.settings.paths.models / "statements"
        if not StatementClassifier.is_fitted(encoder.name, folder):
            # Encoding the examples takes half a minute.
            fit = partial(StatementClassifier.load, encoder, folder)
            self.encoders.background.require(f"statement classifier for {model}", fit)
        with self._loading:
            if model not in self._statements:
                self._statements[model] = StatementClassifier.load(encoder, folder)
        return self._statements[model]

    def _injection_classifier(self, workspace_id: str) -> InjectionClassifier:
        """Return the classifier of injections; raise EncoderPending while it is prepared."""
        # Two encoders together generalize better than one (decision 0041), but English does not compile a second one.
        with self.databases.get(workspace_id).read() as db:
            needs_both = choose_model(self.settings, db) == MULTILINGUAL
        both = needs_both or True in self._injections or is_encoder_compiled(self.settings, MULTILINGUAL)
        encoders = [self.encoders.get(model) for model in ((ENGLISH, MULTILINGUAL) if both else (ENGLISH,))]
        folder = self.settings.paths.models / "injections"
        if not InjectionClassifier.is_fitted([encoder.name for encoder in encoders], folder):
            fit = partial(InjectionClassifier.load, encoders, folder)
            self.encoders.background.require("injection classifier", fit)
        with self._loading:
            if both not in self._injections:
                self._injections[both] = InjectionClassifier.load(encoders, folder)
        return self._injections[both]

    def close(self) -> None:
        """Close all files."""
        for _, index in self._dense.values():
            index.close()
        self.stores.close()
