"""The queue between web servers and workers: what carries and signs its messages, and its consumer.

A message carries names only; what there is to do stands in the work table. A lost message costs time, never work.
"""

import gc
import logging
import signal
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any

from config.import_stubs import HUEY_EXTRAS, hide_packages
from config.operating_system import lower_priority

with hide_packages(HUEY_EXTRAS):
    from huey import Huey
    from huey.consumer import Consumer
    from huey.serializer import Serializer, SignedSerializer
    from huey.storage import SqliteStorage

from config.paths import CurrentToken, file_identity
from config.process import start_program, stop_forks_with_process
from config.settings import Settings

log = logging.getLogger(__name__)

QUEUE_NAME = "reverie"
# Digestion leaves the processor to the web server: people wait for answers, not for embeddings.
NICENESS = 10
# What a worker process gets to release its claims when its consumer was killed.
ORPHAN_GRACE_S = 2


class HealingSqliteStorage(SqliteStorage):  # type: ignore[misc]  # huey ships no types
    """Keep working when the queue's file is deleted or broken under a running process.

    An open connection would go on with the deleted file, or with its deleted log, out of reach of every connection
    that is opened later. A broken file is deleted: it holds only messages.
    """

    _conn: sqlite3.Connection | None
    _identity: tuple[int, int] | None = None
    _log_identity: tuple[int, int] | None = None

    @property
    def conn(self) -> sqlite3.Connection:
        """Return a connection to the file that has the queue's name now."""
        if self._conn is not None and (self._identity, self._log_identity) != self._identities():
            self._conn.close()
            self._conn = None
        if self._conn is None:
            try:
                self._conn = self._open()
            except sqlite3.DatabaseError as error:
                if not _is_broken(error):
                    raise
                self._discard()
                self._conn = self._open()
        return self._conn

    def _open(self) -> sqlite3.Connection:
        file = Path(self.filename)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._identity = file_identity(file)
        connection: sqlite3.Connection = self._create_connection()
        try:
            for statement in self.ddl:
                connection.execute(statement)
        except sqlite3.DatabaseError:
            connection.close()
            raise
        self._identity, self._log_identity = self._identities()
        return connection

    def _identities(self) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
        return file_identity(self.filename), file_identity(f"{self.filename}-wal")

    def read_schedule(self, ts: datetime) -> list[bytes]:
        """Take what is due; where nothing is, look without locking the others out and without writing."""
        due = "select 1 from schedule where queue = ? and timestamp <= ? limit 1"
        if not self.sql(due, (self.name, ts.timestamp()), results=True):
            return []
        return list(super().read_schedule(ts))

    @contextmanager
    def db(self, commit: bool = False, close: bool = False) -> Iterator[sqlite3.Cursor]:
        """Run one operation; one that finds the file broken fails, and the next finds a new file."""
        try:
            with super().db(commit=commit, close=close) as cursor:
                yield cursor
        except sqlite3.DatabaseError as error:
            if _is_broken(error):
                with self.lock:
                    self._discard()
            raise

    def _discard(self) -> None:
        log.warning("the queue's file was broken and is replaced")
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

    Where machines share a store, what signs is a secret that lies there: each machine has a token of its own. A message
    that a former token signed is refused; like a lost one, it costs time, never work.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._settings = settings
        self._current = CurrentToken(settings.paths.token_file)
        self._shared = ""

    def _token(self) -> str:
        if not self._settings.store.reveal():
            return self._current() or self._settings.paths.token()
        if not self._shared:
            from pipeline.services.leadership import open_secret

            self._shared = open_secret(self._settings, QUEUE_NAME) or ""
        return self._shared

    def serialize(self, data: Any) -> bytes:
        """Return a signed message."""
        message: bytes = SignedSerializer(secret=self._token(), salt=QUEUE_NAME).serialize(data)
        return message

    def deserialize(self, data: bytes) -> Any:
        """Return what a message says; raise ValueError when it was signed with anything else."""
        return SignedSerializer(secret=self._token(), salt=QUEUE_NAME).deserialize(data)


class WorkerQueue(Huey):  # type: ignore[misc]  # huey ships no types
    """A queue of a home; its file and its token are made when the first message is sent or looked for.

    `purges` is a queue beside it, whose messages a thread of their own reads: they never wait for a model.
    """

    purges: "WorkerQueue | None" = None

    def __init__(self, settings: Settings, name: str = QUEUE_NAME) -> None:
        storage: dict[str, Any]
        if settings.queue_url:
            storage = {"storage_class": _redis_storage(), "url": settings.queue_url}
        else:
            file = str(settings.paths.queue)
            storage = {"storage_class": HealingSqliteStorage, "filename": file, "fsync": False, "create_tables": False}
        super().__init__(name, results=False, serializer=TokenSerializer(settings), **storage)

    def create_consumer(self, **options: Any) -> Consumer:
        """Build the consumer that this process will be; called by `huey_consumer`, whose options these are."""
        # Of no use to who only sends messages.
        from workers.crew import CrewConsumer

        prepare_consumer()
        return CrewConsumer(self, **options)


def _redis_storage() -> Any:
    """Return huey's storage in Redis, from a copy of the module that may find the client that it needs."""
    spec = find_spec("huey.storage")
    assert spec is not None
    assert spec.loader is not None
    storage = module_from_spec(spec)
    spec.loader.exec_module(storage)
    return storage.PriorityRedisStorage


def prepare_consumer() -> None:
    """Make this process a worker of the home; options of ours stand after `--` on huey's command line."""
    from pipeline.bootstrap import mask

    ours = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else []
    start_program("huey_consumer … --", "Digest memories and run jobs.", mask, ours)
    # Huey's own handler would say everything twice, once without redaction.
    logging.getLogger("huey").handlers.clear()
    lower_priority(NICENESS)
    # SIGINT interrupts a task; SIGTERM, which asks the consumer to stop gracefully, is ignored by its processes.
    stop_forks_with_process(signal.SIGINT, ORPHAN_GRACE_S)
    # Memory that forks share stays shared only while it is not written, and the collector writes to all it visits.
    gc.freeze()
