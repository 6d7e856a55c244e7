"""A whole Reverie in one process: real stores, indexes and routes; only the models are fakes."""

import contextlib
import itertools
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from sqlite3 import Connection
from weakref import WeakKeyDictionary

from config.paths import WorkspacePaths
from config.settings import Settings
from pipeline.bootstrap.web import WebContainer
from pipeline.bootstrap.worker import WorkerContainer
from pipeline.features.maintenance import usecases as maintenance
from pipeline.features.maintenance.registry import list_requested_jobs
from pipeline.index.encoders import BackgroundWork
from pipeline.kernel.errors import EncoderUnavailable
from pipeline.kernel.job_runs import RunResult
from pipeline.kernel.records import Draft, Receipt, Stage
from pipeline.kernel.records.access import Access, WritePolicy, decide_access
from pipeline.kernel.records.people import Caller
from pipeline.kernel.stage_loop import ErrorLog, StageRunner, digest
from pipeline.kernel.store import driver, work
from pipeline.kernel.store.database import Database, Databases, WakeUps, WriterProfile
from pipeline.kernel.store.postgres.connection import PostgresConnection
from pipeline.kernel.store.sqlite import SqliteDatabase
from pipeline.kernel.workspace import Workspace
from pipeline.recall import feedback as writer
from pipeline.write.accept import commit
from pipeline.write.prepare import prepare_batch
from tests.fakes.encoder import HashEncoder
from tests.fakes.made_once import MEMORY
from tests.fakes.tagger import FakeTagger

PROFILE = WriterProfile("NORMAL", 1000, 5000)
# Where scratch databases are workspaces of a server instead of files.
SERVED: Databases | None = None
# Who asks waits for what was noted a moment ago, however busy the machine of the tests is.
writer.PATIENCE_S = 20
_numbers = itertools.count(1)
_folders: WeakKeyDictionary[Database, Path] = WeakKeyDictionary()


def accept_batch(database: Database, drafts: Sequence[Draft], policy: WritePolicy | None = None) -> list[Receipt]:
    """Store memories in one transaction, all or none, as a request of several does."""
    return commit(database, prepare_batch(drafts), policy or WritePolicy())


class RecordingNotifier:
    """A notifier that only keeps whom it would wake."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Stage | None]] = []
        self.ever: set[tuple[str, Stage | None]] = set()

    def __call__(self, workspace_id: str, wake_ups: WakeUps) -> None:
        for stage in wake_ups:
            self.sent.append((workspace_id, stage))
            self.ever.add((workspace_id, stage))


class HeldEncoder:
    """What a process holds its encoders in, the same for every model: there from the start, or never."""

    def __init__(self, encoder: HashEncoder | None) -> None:
        self._encoder = encoder
        # What is missing is made at once: tests wait for no thread.
        self.background = BackgroundWork()
        self.background.waits = True

    @property
    def state(self) -> str:
        return "loading" if self._encoder is None else "ready"

    def get(self, _model: str = "hash") -> HashEncoder:
        if self._encoder is None:
            raise EncoderUnavailable("no encoder in this test")
        return self._encoder

    def load_in_background(self) -> None:
        """There is nothing to load."""

    def stop(self) -> None:
        """There is nothing to stop."""


class _OneDatabase:
    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, workspace_id: str, *, create: bool = False) -> Database:  # noqa: ARG002 - there is one
        return self._database

    def exists(self, workspace_id: str) -> bool:  # noqa: ARG002 - each is this one
        return True


class _SameSettings:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def get(self, workspace_id: str) -> Settings:  # noqa: ARG002 - the same everywhere
        return self._settings

    def access(self, workspace_id: str, caller: Caller, through: str | None) -> Access:  # noqa: ARG002 - as above
        return decide_access(workspace_id, self._settings, caller)

    def problem(self, workspace_id: str) -> None:
        """There is none."""


def workspace_over(database: Database, **settings: object) -> Workspace:
    """Return the workspace that a database is the only thing of, under some settings."""
    folder = folder_of(database)
    known = _SameSettings(fast_settings(folder, **settings))
    return Workspace("default", WorkspacePaths(folder), _OneDatabase(database), known)


def fast_settings(home: Path, **changes: object) -> Settings:
    return Settings(home=home, embedding_model="hash", backoff_s=0.01, recall_budget_ms=5000, **changes)


def fit_intents(container: WebContainer) -> None:
    """Fit the classifier of questions, without which answers are not kept."""
    container.contexts.find_intents(container.workspace("default")).prepare(HashEncoder())


def open_web(settings: Settings, encoder: HashEncoder | None = None) -> WebContainer:
    container = WebContainer(settings, RecordingNotifier())
    container.encoders = HeldEncoder(encoder or HashEncoder())
    return container


def flush_notes(container: WebContainer) -> None:
    """Wait until everything that was noted beside the traffic is written."""
    container.feedback.submit(lambda: None).result(timeout=20)


def list_unannounced(container: WebContainer) -> set[tuple[str, Stage]]:
    """Return the stages that wait for memories a web server wrote and of which no worker was notified."""
    waiting = set()
    for workspace_id in container.settings.paths.workspace_ids():
        with container.databases.get(workspace_id).read() as db:
            waiting |= {(workspace_id, stage) for stage in work.list_due_stages(db, time.time())}
    # What embedding leaves to be checked for duplicates is queued by a worker.
    return {(name, stage) for name, stage in waiting - container.notify.ever if stage is not Stage.DEDUP}


def open_worker(settings: Settings, on_commit: Callable[[str, WakeUps], None] | None = None) -> WorkerContainer:
    worker = WorkerContainer(settings) if on_commit is None else WorkerContainer(settings, on_commit)
    worker.encoders = HeldEncoder(HashEncoder())
    worker.tagger = FakeTagger()
    return worker


def run_job(
    worker: WorkerContainer, workspace_id: str, name: str, pausing: Callable[[], bool] = lambda: False
) -> RunResult | None:
    """Run a job once, here and now."""
    return maintenance.run_job(worker.context(workspace_id), name, worker.owner, pausing)


def list_requests(worker: WorkerContainer, workspace_id: str = "default") -> list[str]:
    """List the jobs that somebody asked for."""
    with worker.databases.get(workspace_id).read() as db:
        return list_requested_jobs(db)


def digest_all(worker: WorkerContainer, workspace_id: str = "default") -> None:
    """Run every stage until nothing is due."""
    errors: list[str] = []
    for stage in Stage:
        digest_stage(worker, stage, worker.stages(workspace_id)[stage], errors.append, workspace_id)
    assert errors == [], errors


def digest_stage(
    worker: WorkerContainer, stage: Stage, runner: StageRunner, log: ErrorLog, workspace_id: str = "default"
) -> None:
    """Run one stage until each of its items is done or dead."""
    database = worker.databases.get(workspace_id)
    while True:
        with database.read() as db:
            due = work.find_next_due(db, stage)
        if due is None:
            return
        threading.Event().wait(max(0.0, due - time.time()))
        digest(database, stage, runner, worker.owner, worker.policy, log, time.monotonic() + 60)


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for one example of a property, gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="reverie-test-", dir=MEMORY))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextlib.contextmanager
def scratch_database() -> Iterator[Database]:
    """A migrated database for one example of a property; copied, as migrating takes longer than most examples."""
    with scratch_folder() as folder:
        if SERVED is not None:
            database = SERVED.get(f"scratch-{next(_numbers)}", create=True)
            _folders[database] = folder
            yield database
            return
        file = folder / "events.sqlite"
        file.write_bytes(_make_migrated(is_encrypted=driver.find_key(file) is not None))
        database = SqliteDatabase(file, PROFILE, create=False)
        try:
            yield database
        finally:
            database.close()


def folder_of(database: Database) -> Path:
    """Return the folder for what stands beside a scratch database."""
    return _folders[database] if database.file is None else database.file.parent


def dump(db: Connection) -> list[str]:
    """Render every row of a workspace."""
    if not isinstance(db, PostgresConnection):
        return list(db.iterdump())
    tables = db.execute("SELECT relname FROM pg_class WHERE relforcerowsecurity ORDER BY relname").fetchall()
    return [f"{table}: {row}" for (table,) in tables for row in db.execute(f"SELECT * FROM {table}").fetchall()]


@cache
def _make_migrated(*, is_encrypted: bool) -> bytes:
    with scratch_folder() as folder:
        database = SqliteDatabase(folder / "events.sqlite", PROFILE, create=True)
        database.erase_deleted_data()
        database.close()
        assert driver.is_plain(database.file) is not is_encrypted
        return database.file.read_bytes()
