"""The services of a front door: durable writes and bounded reads. No stage and no job is imported here."""

import logging
import threading
import time
from collections.abc import Callable
from functools import cache, partial

from config.settings import Settings
from config.token import CurrentToken
from pipeline.bootstrap.foresight import Foresight
from pipeline.bootstrap.parts import load_encoder, mask, vector_table
from pipeline.errors import EncoderUnavailable, NotFound, ReverieError
from pipeline.index.dense import DenseIndex
from pipeline.index.encoder import Encoder, is_compiled
from pipeline.index.lexical import LexicalIndex
from pipeline.index.ranking_features import RankingFeatures
from pipeline.index.sessions import SessionMap
from pipeline.index.vectors import preload_vectors
from pipeline.recall.cache import AnswerCache
from pipeline.recall.channels import ChannelPool
from pipeline.recall.fact_names import FactNames, KeyMatch
from pipeline.recall.search import SearchContext, warm
from pipeline.records import FactKey, Scope, Stage
from pipeline.services.feedback import FeedbackWriter
from pipeline.services.incognito import is_incognito
from pipeline.services.workspace import Workspace, WorkspaceSettings
from pipeline.store import facts
from pipeline.store.database import Database, Databases, WakeUps, WriterProfile
from pipeline.store.operations import Operations
from pipeline.write.accept import WritePolicy

log = logging.getLogger(__name__)

ENCODER_CHECK_S = 0.5
# A front's commits carry no checkpoints until the log is large; the workers' smaller threshold comes first.
CHECKPOINT_PAGES = 16_000


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

    def __init__(self, settings: Settings, notify: Callable[[str, Stage | None], None]) -> None:
        settings.paths.ensure()
        self.started = self.requested = time.monotonic()
        # Set as soon as the process is asked to end: an answer that takes its time must not hold it up.
        self.stopping = threading.Event()
        self.settings = settings
        # Made here, on the first start; what the file says later counts later.
        settings.paths.token()
        self._token = CurrentToken(settings.paths.token_file)
        self.operations = Operations(settings.paths.operations, mask)
        self.notify = notify
        profile = WriterProfile("FULL", CHECKPOINT_PAGES, settings.busy_timeout_ms)
        self.databases = Databases(settings.paths, profile, self._notify_workers)
        self.encoder = QueryEncoder(settings, lambda message: self.operations.record_error("encoder", message))
        self._channels = ChannelPool()
        self._fact_names = FactNames()
        self._settings = WorkspaceSettings(settings, self.operations)
        self.feedback = FeedbackWriter(self.operations)
        self._lock = threading.Lock()
        self._readers: dict[str, SearchContext] = {}
        self.foresight = Foresight(self.reader, self.workspace_settings, self._report_foresight)

    @property
    def token(self) -> str:
        """Return the bearer token that opens this front now."""
        return self._token()

    def warm_up(self) -> None:
        """Load in a thread what the first requests would otherwise wait for."""

        def load() -> None:
            # Before the encoder: the imports that it needs would hold up the first lexical answer threefold.
            self._warm_words()
            self.encoder.load()
            # Without the encoder no answer is whole enough to be kept.
            self.foresight.start()
            self.foresight.stir(self.settings.workspace)

        threading.Thread(target=load, name="warm-up", daemon=True).start()

    def _warm_words(self) -> None:
        try:
            warm(self.reader(self.settings.workspace))
        except NotFound:
            log.debug("nothing was written to %s yet", self.settings.workspace)
        except ReverieError as error:
            self.operations.record_error("warm-up", str(error), workspace=self.settings.workspace)

    def workspace(self, workspace_id: str) -> Workspace:
        """Return a workspace, whether anything was written there or not."""
        paths = self.settings.paths.workspace(workspace_id)
        return Workspace(workspace_id, paths, self.databases, self._settings)

    def workspace_settings(self, workspace_id: str) -> Settings:
        """Return the settings in force in a workspace."""
        return self._settings.get(workspace_id)

    def write_policy(self, workspace_id: str) -> WritePolicy:
        """Return how a workspace takes memories in; raise  when its own settings cannot be taken."""
        return self.workspace(workspace_id).write_policy()

    def reader(self, workspace_id: str) -> SearchContext:
        """Return what recall reads of a workspace; raise NotFound when it does not exist."""
        database = self.databases.get(workspace_id)
        with self._lock:
            known = self._readers.get(workspace_id)
            if known is None or known.database is not database:
                known = self._readers[workspace_id] = self._open_reader(workspace_id, database)
            return known

    def _open_reader(self, workspace_id: str, database: Database) -> SearchContext:
        paths = self.settings.paths.workspace(workspace_id)

        @cache
        def dense_index() -> DenseIndex:
            encoder = self.encoder.get()
            return DenseIndex(vector_table(paths, encoder), self.settings.dense_exact_rows, encoder.background)

        sessions = SessionMap()
        return SearchContext(
            database,
            LexicalIndex(paths.lexical, sessions),
            dense_index,
            sessions,
            RankingFeatures(),
            self.encoder.get,
            self._channels,
            AnswerCache(),
            partial(self.feedback.report_channel_error, self.workspace(workspace_id)),
        )

    def asked(self, workspace_id: str, text: str, *sessions: str | None) -> None:
        """Note a question; raise NotFound when the workspace does not exist."""
        self.foresight.stir(workspace_id)
        if not is_incognito(self.workspace(workspace_id), *sessions):
            self.feedback.record_question(self.workspace(workspace_id), text)

    def fact_names(self, workspace_id: str, asked: FactKey, scope: Scope) -> KeyMatch:
        """Return the known fact that a name means, and what else it may mean."""
        with self.databases.get(workspace_id).read() as db:
            known = facts.keys(db, scope)
        try:
            encoder = self.encoder.get()
        except EncoderUnavailable:
            encoder = None
        return self._fact_names.match(asked, known, encoder)

    def _notify_workers(self, workspace_id: str, wake_ups: WakeUps) -> None:
        for stage in wake_ups:
            self.notify(workspace_id, stage)

    def _report_foresight(self, workspace_id: str, message: str) -> None:
        self.operations.record_error("foresight", message, workspace=workspace_id)

    def close(self) -> None:
        """Let go of every thread and file."""
        self.stopping.set()
        self.encoder.stop()
        self.foresight.close()
        self._channels.close()
        self.feedback.close()
        self.databases.close()
        self.operations.close()
