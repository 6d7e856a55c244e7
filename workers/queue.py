"""The queue between the fronts and the workers: the Huey instance, its tasks, and the notifier.

A message carries names only; what there is to do stands in the work table. A lost message costs time, never work.
"""

import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huey import Huey
from huey.serializer import Serializer, SignedSerializer
from huey.storage import PriorityRedisStorage, SqliteStorage

from config.files import file_identity
from config.settings import Settings
from config.token import CurrentToken

log = logging.getLogger(__name__)

QUEUE_NAME = "reverie"
# Writes come in bursts; one message serves every write of this stretch.
COALESCE_S = 0.25


class HealingSqliteStorage(SqliteStorage):  # type: ignore[misc]  # huey ships no types
    """Keep working when the queue's file is deleted or broken under a running process.

    An open connection would go on with the deleted file, or with its deleted log, out of reach of every connection
    that is opened later. A broken file is deleted: it holds only messages.
    """

    _conn: sqlite3.Connection | None
    _identity: tuple[int, int] | None = None
    _log_identity: tuple[int, int] | None = None

    def initialize_schema(self) -> None:
        """Make the tables; a broken file makes way for a new one."""
        try:
            super().initialize_schema()
        except sqlite3.DatabaseError as error:
            if not _is_broken(error):
                raise
            super().initialize_schema()

    @property
    def conn(self) -> sqlite3.Connection:
        """Return a connection to the file that has the queue's name now."""
        if self._conn is not None and (self._identity, self._log_identity) != self._identities():
            self._conn.close()
            self._conn = None
        if self._conn is None:
            self._identity = file_identity(self.filename)
            connection: sqlite3.Connection = self._create_connection()
            for statement in self.ddl:
                connection.execute(statement)
            self._conn = connection
            self._identity, self._log_identity = self._identities()
        return self._conn

    def _identities(self) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
        return file_identity(self.filename), file_identity(f"{self.filename}-wal")

    @contextmanager
    def db(self, commit: bool = False, close: bool = False) -> Iterator[sqlite3.Cursor]:
        """Run one operation; one that finds the file broken fails, and the next finds a new file."""
        try:
            with super().db(commit=commit, close=close) as cursor:
                yield cursor
        except sqlite3.DatabaseError as error:
            if _is_broken(error):
                log.warning("the queue's file was broken and is replaced: %s", error)
                self._discard()
            raise

    def _discard(self) -> None:
        with self.lock:
            if self._conn is not None:
                self._conn.close()
                self._conn = None
            # Another process may have replaced the file already.
            if self._identity is not None and self._identity == file_identity(self.filename):
                for suffix in ("", "-wal", "-shm"):
                    Path(f"{self.filename}{suffix}").unlink(missing_ok=True)


def _is_broken(error: sqlite3.DatabaseError) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class TokenSerializer(Serializer):  # type: ignore[misc]  # huey ships no types
    """Sign messages with the token as it is now: they are pickles, so only who holds this home's token may write one.

    A message that a former token signed is refused; like a lost one, it costs time, never work.
    """

    def __init__(self, token: Callable[[], str]) -> None:
        super().__init__()
        self._token = token

    def serialize(self, data: Any) -> bytes:
        """Return a signed message."""
        message: bytes = SignedSerializer(secret=self._token(), salt=QUEUE_NAME).serialize(data)
        return message

    def deserialize(self, data: bytes) -> Any:
        """Return what a message says; raise ValueError when it was signed with anything else."""
        return SignedSerializer(secret=self._token(), salt=QUEUE_NAME).deserialize(data)


class Queue:
    """Hand names of work to the workers."""

    def __init__(self, settings: Settings) -> None:
        paths = settings.paths
        storage: dict[str, Any]
        if settings.queue_url:
            storage = {"storage_class": PriorityRedisStorage, "url": settings.queue_url}
        else:
            paths.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            storage = {"storage_class": HealingSqliteStorage, "filename": str(paths.queue), "fsync": False}
        paths.token()
        serializer = TokenSerializer(CurrentToken(paths.token_file))
        self.huey = Huey(QUEUE_NAME, results=False, serializer=serializer, **storage)
        # What was written comes before what makes it better.
        self.digest = self.huey.task(name="digest", priority=2)(_digest)
        self.sweep = self.huey.task(name="sweep", priority=1)(_sweep)
        self.run_job = self.huey.task(name="run_job", priority=0)(_run_job)


@dataclass(frozen=True, slots=True, order=True)
class WakeUp:
    """A wake-up message: a workspace has work, for a stage or, without one, of some other sort."""

    workspace_id: str
    stage: str = ""


def wake_workers(queue: Queue, message: WakeUp) -> None:
    """Tell the workers that a workspace has work."""
    if message.stage:
        queue.digest(message.workspace_id, message.stage)
    else:
        queue.sweep(message.workspace_id)


class Notifier:
    """Notify the workers off the request path: once for all the commits of a short stretch, never failing one."""

    def __init__(self, send: Callable[[WakeUp], None], on_error: Callable[[str], None]) -> None:
        self._send = send
        self._on_error = on_error
        self._waiting: set[WakeUp] = set()
        self._changed = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="notifier", daemon=True)
        self._thread.start()

    def notify(self, message: WakeUp) -> None:
        """Note that a workspace has work; returns at once."""
        with self._changed:
            self._waiting.add(message)
            self._changed.notify()

    def close(self) -> None:
        """Send what still waits and stop."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        pause = threading.Event()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._stopped)
                if not self._waiting:
                    return
                messages, self._waiting = self._waiting, set()
            for message in sorted(messages):
                self._try_to_send(message)
            pause.wait(COALESCE_S)

    def _try_to_send(self, message: WakeUp) -> None:
        try:
            self._send(message)
        except Exception as error:  # noqa: BLE001 - any broker's error; the scheduler finds the work without the message
            self._on_error(f"the wake-up message of {message.workspace_id} failed: {type(error).__name__}: {error}")


def _digest(workspace_id: str, stage: str) -> None:
    from workers import tasks

    tasks.digest(workspace_id, stage)


def _run_job(name: str, workspace_id: str, *, tries: int = 1, again: bool = False) -> None:
    from workers import tasks

    tasks.run_job(name, workspace_id, tries=tries, again=again)


def _sweep(workspace_id: str) -> None:
    from workers import tasks

    tasks.sweep(workspace_id)
