"""The web server's container: durable writes and bounded reads. No stage and no job is imported here."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from config.paths import CurrentToken
from config.process import trim_heap
from config.settings import Settings
from pipeline.bootstrap import mask
from pipeline.features.diagnostics.recording_check import RecordingWatch
from pipeline.features.facts.usecases import FactKeyResolver
from pipeline.features.people.access_log import AccessLog
from pipeline.features.people.usecases import PersonFolders
from pipeline.features.snapshots.usecases import KeptSnapshots
from pipeline.features.team.usecases import TeamService
from pipeline.index.dense import EXACT_ROWS
from pipeline.index.encoder import Encoder
from pipeline.index.encoders import QueryModels, find_model, load_query_encoder, load_reranker, usual_model
from pipeline.index.reranker import Reranker, reranker_name
from pipeline.index.storage import open_storage, shared_models
from pipeline.kernel.errors import EncoderUnavailable, FieldError, NotFound, ReverieError
from pipeline.kernel.lru import LruCache
from pipeline.kernel.store.database import WakeUps, WriterProfile
from pipeline.kernel.store.host_activity import HostActivity
from pipeline.kernel.store.stores import open_stores
from pipeline.kernel.workspace import Workspace, WorkspaceSettings
from pipeline.prompt.deliveries import HookDeliveries
from pipeline.prompt.follow_up import LastMessages
from pipeline.recall.contexts import SearchContexts
from pipeline.recall.feedback import FeedbackWriter
from pipeline.recall.search import warm
from pipeline.sessions.orders.nosave import load_no_save_classifier

if TYPE_CHECKING:
    from pipeline.bootstrap.agent_services import AgentServices
    from pipeline.features.sync.usecases import SyncService

log = logging.getLogger(__name__)

# A web server checkpoints only a large log, because the workers have a smaller threshold and do it first.
CHECKPOINT_PAGES = 16_000
REMEMBERED_FILES = 256


class WebContainer:
    """Everything that the API, the dashboard and hooks need, created once per process."""

    def __init__(self, settings: Settings, notify: Callable[[str, WakeUps], None], *, creates: bool = True) -> None:
        self._paths = settings.paths
        self.started = self.requested = time.monotonic()
        # Set as soon as the process is asked to stop, so that a slow answer does not delay it.
        self.stopping = threading.Event()
        self.settings = settings
        if creates:
            settings.paths.ensure()
            # Create the token on the first start; later changes of the file take effect at once.
            settings.paths.token()
        self._token = CurrentToken(settings.paths.token_file)
        self.notify = notify
        profile = WriterProfile("FULL", CHECKPOINT_PAGES)
        self.stores = open_stores(settings, profile, mask, notify)
        self.databases, self.operations = self.stores.databases, self.stores.operations
        self.people = self.stores.people
        self.access_log = AccessLog(self.people, self.operations)
        self._settings = WorkspaceSettings(settings, self.stores)
        self._unused_files: LruCache[FieldError, bool] = LruCache(REMEMBERED_FILES)
        objects = open_storage(settings)
        models = shared_models(settings, objects)
        self.encoders = QueryModels(settings, partial(self._report_model, "encoder"), models, load_query_encoder)
        self.rerankers = QueryModels(settings, partial(self._report_model, "reranker"), models, load_reranker)
        self.snapshots = KeptSnapshots(settings, objects)
        self.feedback = FeedbackWriter(self.operations)
        self.contexts = SearchContexts(
            self._get_encoder,
            EXACT_ROWS,
            self.feedback.report_channel_error,
            objects,
            self._get_reranker if settings.reranker else None,
        )
        self.teams = TeamService(settings.paths.servers, lambda says: self.operations.record_error("team", says))
        self.last_messages = LastMessages()
        self.host_activity = HostActivity(settings.paths.host_activity)
        self.recording = RecordingWatch(partial(self.operations.record_error_once, "hooks"))
        self.hook_deliveries, self.person_folders = HookDeliveries[Any](), PersonFolders()
        self._agents: AgentServices | None = None
        self._agents_lock = threading.Lock()
        self.fact_keys = FactKeyResolver(lambda: self._get_encoder(usual_model(settings)))

    @property
    def agents(self) -> "AgentServices":
        """Return the services of agents' sessions."""
        return self.load_agents()

    def load_agents(self) -> "AgentServices":
        """Import and create the services of agents' sessions once."""
        with self._agents_lock:
            if self._agents is None:
                from pipeline.bootstrap.agent_services import AgentServices

                self._agents = AgentServices(
                    self.stores,
                    self.workspace,
                    self.settings.workspace,
                    self.contexts,
                    self.feedback,
                    self.teams,
                    self.last_messages,
                )
            return self._agents

    @cached_property
    def sync(self) -> "SyncService":
        """Return the sync service; its ciphers are loaded on first use."""
        from pipeline.features.sync.usecases import SyncService

        return SyncService(self.stores, self._settings)

    @property
    def token(self) -> str:
        """Return the current bearer token of this web server."""
        return self._token()

    def restore_token(self) -> None:
        """Create a new token if the token file is missing, so that rejected clients can try again."""
        if not self.settings.paths.token_file.exists():
            try:
                self.settings.paths.token()
            except OSError as error:
                self.operations.record_error("token", f"{self.settings.paths.token_file} cannot be made: {error}")

    def report_unused_file(self, problem: FieldError) -> None:
        """Record why a project's file is not used; only once, because every event of an agent reads it."""

        def record() -> bool:
            self.operations.record_error("project-file", f"{problem.loc} is not used: {problem.msg}")
            return True

        self._unused_files.get(problem, lambda _: True, record)

    def workspace(self, workspace_id: str) -> Workspace:
        """Return a workspace, which need not exist yet."""
        paths = self._paths.workspace(workspace_id)
        return Workspace(workspace_id, paths, self.databases, self._settings)

    def warm_up(self, first: Callable[[], object], afterwards: Callable[[], object]) -> None:
        """Call a function, load indexes and the encoder, and call another function, all in a thread."""
        self.contexts.is_warming = True
        threading.Thread(target=self._load, args=(first, afterwards), name="warm-up", daemon=True).start()

    def close(self) -> None:
        """Close all threads and files."""
        self.stopping.set()
        self.encoders.stop()
        self.rerankers.stop()
        self.teams.close()
        self.contexts.close()
        self.feedback.close()
        self.access_log.close()
        self.stores.close()

    def _get_encoder(self, model: str) -> Encoder:
        return self.encoders.get(model)

    def _get_reranker(self) -> Reranker:
        return self.rerankers.get(reranker_name(self.settings.reranker))

    def _report_model(self, component: str, message: str) -> None:
        self.operations.record_error(component, message)

    def _load(self, first: Callable[[], object], afterwards: Callable[[], object]) -> None:
        try:
            first()
        except Exception as error:  # noqa: BLE001 - the first hook event loads them again, and fails with this error
            self.operations.record_error("warm-up", f"{type(error).__name__}: {error}")
        # Before the encoder: its imports would make the first lexical answer three times slower.
        usual, model = self.workspace(self.settings.workspace), usual_model(self.settings)
        try:
            warm(self.contexts.get(usual))
            with usual.database.read() as db:
                model = find_model(self.settings, db)
        except NotFound:
            log.debug("nothing was written to %s yet", usual.id)
        except ReverieError as error:
            self.operations.record_error("warm-up", str(error), workspace=usual.id)
        self.encoders.load(model)
        if self.settings.reranker:
            with suppress(EncoderUnavailable):
                # This starts loading it; before it is compiled, later queries do.
                self._get_reranker()
        with suppress(EncoderUnavailable):
            self.contexts.find_intents(usual).prepare(self._get_encoder(model))
        self.contexts.is_warming = False
        load_no_save_classifier()
        # Fitting the classifiers took 40 MiB in addition.
        trim_heap()
        afterwards()
