"""The composition root: the only place that wires settings, stores, indexes and stages together."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from pathlib import Path

from config.files import file_identity
from config.owner import is_alive, process_owner
from config.paths import WorkspacePaths
from config.settings import Settings, SettingsError, load_settings
from config.threads import limit_threads
from pipeline.enrich.digest import DigestPolicy
from pipeline.enrich.embed import EmbedStage
from pipeline.enrich.entities import SpacyTagger, Tagger
from pipeline.enrich.link import EntitiesStage
from pipeline.enrich.purge import PurgeStage
from pipeline.enrich.stages import StageRegistry
from pipeline.errors import EncoderUnavailable, IndexUnavailable, NotFound, ReverieError
from pipeline.index.dense import DenseIndex
from pipeline.index.encoder import Encoder, OnnxEncoder, encoder_directory, is_compiled
from pipeline.index.lexical import LexicalIndex
from pipeline.index.sessions import SessionMap
from pipeline.index.standings import Standings
from pipeline.index.vectors import VectorTable, preload_vectors
from pipeline.recall.cache import AnswerCache
from pipeline.recall.channels import ChannelPool
from pipeline.recall.query import Channel
from pipeline.recall.search import Reader, warm
from pipeline.records import Stage
from pipeline.redaction import preload, redact
from pipeline.sleep.segment import needs_segment, rebuild_segment
from pipeline.sleep.sweep import sweep
from pipeline.sleep.vectors import compact_vectors, heal_vectors, needs_compaction
from pipeline.store.database import Database, WriterProfile
from pipeline.store.operations import Operations
from pipeline.write.feedback import ask_for_segment

log = logging.getLogger(__name__)

ENCODER_CHECK_S = 0.5
# A front's commits carry no checkpoints until the log is large; the workers' smaller threshold comes first.
FRONT_CHECKPOINT_PAGES = 16_000
BACK_CHECKPOINT_PAGES = 1_000
# LanceDB reads every fragment of a table: at once when appends have left many, on the clock when they left a few.
MANY_FRAGMENTS = 64
FEW_FRAGMENTS = 8


def mask(text: str) -> str:
    """Return a text without secrets."""
    return redact(text).text


class Databases:
    """Open each workspace's database once, and again when its file was replaced."""

    def __init__(self, settings: Settings, profile: WriterProfile) -> None:
        self._paths = settings.paths
        self._profile = profile
        self._lock = threading.Lock()
        self._open: dict[str, tuple[Database, tuple[int, int]]] = {}

    def get(self, workspace_id: str, *, create: bool = False) -> Database:
        """Return a workspace's database; raise NotFound when it does not exist and is not to be made."""
        file = self._paths.workspace(workspace_id).events
        known = self._open.get(workspace_id)
        if known is not None and known[1] == file_identity(file):
            return known[0]
        with self._lock:
            known = self._open.get(workspace_id)
            if known is not None and known[1] == file_identity(file):
                return known[0]
            database = Database(file, self._profile, create=create)
            identity = file_identity(file)
            if identity is None:
                raise NotFound("no such workspace")
            self._open[workspace_id] = (database, identity)
            return database

    def close(self) -> None:
        """Close every database."""
        with self._lock:
            for database, _ in self._open.values():
                database.close()
            self._open.clear()


class QueryEncoder:
    """Hold the encoder of a front: absent until a worker has compiled it, then loaded beside the traffic."""

    def __init__(self, settings: Settings, on_error: Callable[[str], None]) -> None:
        self._settings = settings
        self._on_error = on_error
        self._encoder: Encoder | None = None
        self._stop = threading.Event()

    def get(self) -> Encoder:
        """Return the encoder or raise EncoderUnavailable at once."""
        if self._encoder is None:
            raise EncoderUnavailable("the encoder is not loaded yet")
        return self._encoder

    @property
    def state(self) -> str:
        """Return `ready` or `loading`."""
        return "loading" if self._encoder is None else "ready"

    def stop(self) -> None:
        """End the waiting."""
        self._stop.set()

    def load(self) -> None:
        """Wait until a worker has compiled the model, or until stopped, and load it."""
        preload_vectors()
        failed = ""
        while self._encoder is None and not self._stop.is_set():
            try:
                encoder = load_encoder(self._settings)
                encoder.encode_query("warm up")
                self._encoder = encoder
            except EncoderUnavailable as error:
                if is_compiled(self._settings.embedding_model, self._settings.paths.models) and str(error) != failed:
                    failed = str(error)
                    self._on_error(failed)
                self._stop.wait(ENCODER_CHECK_S)


class Front:
    """Everything that a front door needs: durable writes and bounded reads."""

    def __init__(self, settings: Settings, ring: Callable[[str, Stage | None], None]) -> None:
        settings.paths.ensure()
        self.started = time.monotonic()
        self.settings = settings
        self.token = settings.paths.token()
        self.operations = Operations(settings.paths.operations, mask)
        self.databases = Databases(settings, WriterProfile("FULL", FRONT_CHECKPOINT_PAGES, settings.busy_timeout_ms))
        self.ring = ring
        self.encoder = QueryEncoder(settings, lambda message: self.operations.record_error("encoder", message))
        self._channels = ChannelPool()
        self._feedback = ThreadPoolExecutor(1, thread_name_prefix="feedback")
        self._lock = threading.Lock()
        self._readers: dict[str, Reader] = {}
        self._overridden: dict[str, tuple[int, Settings]] = {}

    def warm_up(self) -> None:
        """Load in a thread what the first requests would otherwise wait for."""

        def load() -> None:
            preload()
            # Before the encoder: the imports that it needs would hold up the first lexical answer threefold.
            self._warm_words()
            self.encoder.load()

        threading.Thread(target=load, name="warm-up", daemon=True).start()

    def _warm_words(self) -> None:
        try:
            warm(self.reader(self.settings.workspace))
        except NotFound:
            log.debug("nothing was written to %s yet", self.settings.workspace)
        except ReverieError as error:
            self.operations.record_error("warm-up", str(error), workspace=self.settings.workspace)

    def workspace_settings(self, workspace_id: str) -> Settings:
        """Return the settings with a workspace's own on top, read again when its file changed."""
        file = self.settings.paths.workspace(workspace_id).config
        try:
            changed = file.stat().st_mtime_ns
        except FileNotFoundError:
            return self.settings
        known = self._overridden.get(workspace_id)
        if known is None or known[0] != changed:
            try:
                known = (changed, load_settings(workspace_id=workspace_id))
            except SettingsError as error:
                self.operations.record_error("settings", str(error), workspace=workspace_id)
                known = (changed, self.settings)
            self._overridden[workspace_id] = known
        return known[1]

    def reader(self, workspace_id: str) -> Reader:
        """Return what recall reads of a workspace; raise NotFound when it does not exist."""
        database = self.databases.get(workspace_id)
        with self._lock:
            known = self._readers.get(workspace_id)
            if known is None or known.database is not database:
                known = self._readers[workspace_id] = self._open_reader(workspace_id, database)
            return known

    def _open_reader(self, workspace_id: str, database: Database) -> Reader:
        paths = self.settings.paths.workspace(workspace_id)

        @cache
        def dense_index() -> DenseIndex:
            encoder = self.encoder.get()
            return DenseIndex(vector_table(paths, encoder), self.settings.dense_exact_rows, encoder.background)

        def on_error(channel: Channel, error: Exception) -> None:
            self._feedback.submit(self._report, workspace_id, database, channel, error)

        sessions = SessionMap()
        return Reader(
            database,
            LexicalIndex(paths.lexical, sessions),
            dense_index,
            sessions,
            Standings(),
            self.encoder.get,
            self._channels,
            AnswerCache(),
            on_error,
        )

    def _report(self, workspace_id: str, database: Database, channel: Channel, error: Exception) -> None:
        if channel is not Channel.LEXICAL or not isinstance(error, IndexUnavailable):
            self.operations.record_error(f"recall.{channel}", str(error), workspace=workspace_id)
        elif ask_for_segment(database, error.part):
            self.operations.record_error(f"recall.{channel}", str(error), workspace=workspace_id)
            self.ring(workspace_id, None)

    def close(self) -> None:
        """Let go of every thread and file."""
        self.encoder.stop()
        self._channels.close()
        self._feedback.shutdown(wait=True)
        self.databases.close()
        self.operations.close()


class Back:
    """Everything that a worker needs: stages and jobs over every workspace."""

    def __init__(self, settings: Settings) -> None:
        settings.paths.ensure()
        self.settings = settings
        self.owner = process_owner()
        self.operations = Operations(settings.paths.operations, mask)
        self.databases = Databases(settings, WriterProfile("NORMAL", BACK_CHECKPOINT_PAGES, settings.busy_timeout_ms))
        self.policy = DigestPolicy(settings.work_batch, settings.lease_s, settings.backoff_s)

    @cached_property
    def encoder(self) -> Encoder:
        """Return the encoder, compiling it on first use."""
        from pipeline.index.compile import compile_encoder

        if not is_compiled(self.settings.embedding_model, self.settings.paths.models):
            log.info("compiling the encoder %s; this happens once", self.settings.embedding_model)
            compile_encoder(self.settings.embedding_model, self.settings.paths.models)
        return load_encoder(self.settings)

    @cached_property
    def tagger(self) -> Tagger:
        """Return the named-entity tagger."""
        tagger = SpacyTagger.load()
        limit_threads(self.settings.encoder_threads)
        return tagger

    def vectors(self, workspace_id: str) -> VectorTable:
        """Return a workspace's vector table."""
        return vector_table(self.settings.paths.workspace(workspace_id), self.encoder)

    def stages(self, workspace_id: str) -> StageRegistry:
        """Return the stages of a workspace."""
        database = self.databases.get(workspace_id)
        return {
            Stage.EMBED: EmbedStage(database, lambda: self.vectors(workspace_id), lambda: self.encoder),
            Stage.ENTITIES: EntitiesStage(database, lambda: self.tagger),
            Stage.PURGE: PurgeStage(
                database, lambda: self.vectors(workspace_id), lambda: self.rebuild_segment(workspace_id)
            ),
        }

    def jobs(self, workspace_id: str) -> Mapping[str, Callable[[], object]]:
        """Return the maintenance jobs of a workspace by name."""
        return {
            "segment": lambda: self.rebuild_segment(workspace_id),
            "vectors": lambda: compact_vectors(self.vectors(workspace_id)),
        }

    def heal(self, workspace_id: str) -> int:
        """Queue again what the vector index should hold and does not; return how many memories."""
        return heal_vectors(
            self.databases.get(workspace_id),
            self.vectors(workspace_id),
            self.settings.paths.workspace(workspace_id).vectors,
            self.encoder.name,
            lambda message: self.operations.record_error("vectors", message, workspace=workspace_id),
        )

    def due_stages(self, workspace_id: str) -> list[Stage]:
        """Free the leases of dead workers; return the stages that have something to claim."""
        for worker in self.operations.workers():
            if not is_alive(worker.owner):
                self.operations.forget_worker(worker.owner)
        return sweep(self.databases.get(workspace_id), is_alive)

    def due_jobs(self, workspace_id: str, *, tidy: bool = False) -> list[str]:
        """Return the maintenance jobs that a workspace's state asks for; to tidy, a single fresh row is enough."""
        due = []
        if needs_segment(self.databases.get(workspace_id), 1 if tidy else self.settings.segment_tail_rows):
            due.append("segment")
        if needs_compaction(self.vectors(workspace_id), FEW_FRAGMENTS if tidy else MANY_FRAGMENTS):
            due.append("vectors")
        return due

    def rebuild_segment(self, workspace_id: str) -> int:
        """Build a workspace's lexical segment anew."""
        return rebuild_segment(self.databases.get(workspace_id), self.settings.paths.workspace(workspace_id).lexical)

    def close(self) -> None:
        """Let go of every file."""
        self.databases.close()
        self.operations.close()


def load_encoder(settings: Settings) -> Encoder:
    """Load the compiled encoder of the settings; raise EncoderUnavailable when there is none."""
    directory = encoder_directory(settings.embedding_model, settings.paths.models)
    encoder = OnnxEncoder.load(directory, threads=settings.encoder_threads)
    limit_threads(settings.encoder_threads)
    return encoder


def vector_table(paths: WorkspacePaths, encoder: Encoder) -> VectorTable:
    """Return the table of an encoder's vectors in a workspace."""
    return VectorTable(paths.vectors, encoder_directory(encoder.name, Path()).name, encoder.dimension)
