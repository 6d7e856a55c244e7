"""The queue between web servers and workers: the storage and signatures of its messages, and its consumer.

A message contains only names; the work itself is in the work table. A lost message delays work, but never loses it.
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
# The web server has priority: people wait for answers, not for embeddings.
NICENESS = 10
# Seconds for a worker process to release its claims after its consumer was killed.
ORPHAN_GRACE_S = 2


class HealingSqliteStorage(SqliteStorage):  # type: ignore[misc]  # huey ships no types
    """Keep working when the queue's file is deleted or broken under a running process.

    An open connection would continue to use the deleted file or its deleted log, which new connections cannot see. A
    broken file is deleted, because it contains only messages.
    """

    _conn: sqlite3.Connection | None
    _identity: tuple[int, int] | None = None
    _log_identity: tuple[int, int] | None = None

    @property
    def conn(self) -> sqlite3.Connection:
        """Return a connection to the file that currently has the queue's name."""
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
        """Take the due messages; if there are none, only read, without a lock."""
        due = "select 1 from schedule where queue = ? and timestamp <= ? limit 1"
        if not self.sql(due, (self.name, ts.timestamp()), results=True):
            return []
        return list(super().read_schedule(ts))

    @contextmanager
    def db(self, commit: bool = False, close: bool = False) -> Iterator[sqlite3.Cursor]:
        """Run one operation; if the file is broken, fail and replace the file for the next operation."""
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
    """Sign messages with the current token: messages are pickles, so only owners of the token may write them.

    If machines share a store, sign with a secret in the store, because each machine has its own token. Messages signed
    with an earlier token are rejected; like a lost message, that only delays work.
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
            from pipeline.kernel.leadership import open_secret

            self._shared = open_secret(self._settings, QUEUE_NAME) or ""
        return self._shared

    def serialize(self, data: Any) -> bytes:
        """Return a signed message."""
        message: bytes = SignedSerializer(secret=self._token(), salt=QUEUE_NAME).serialize(data)
        return message

    def deserialize(self, data: bytes) -> Any:
        """Return the content of a message; raise ValueError for an invalid signature."""
        return SignedSerializer(secret=self._token(), salt=QUEUE_NAME).deserialize(data)


class WorkerQueue(Huey):  # type: ignore[misc]  # huey ships no types
    """The queue of a data directory; its file and token are created at the first message.

    `purges` is a second queue with its own thread, so that purges never wait for a model.
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
        """Create the consumer of this process; `huey_consumer` calls this with its options."""
        # Imported here because processes that only send messages do not need it.
        from workers.consumer import ForkingConsumer

        prepare_consumer()
        return ForkingConsumer(self, **options)


def _redis_storage() -> Any:
    """Return huey's Redis storage from a new copy of its module, which can import the Redis client."""
    spec = find_spec("huey.storage")
    assert spec is not None
    assert spec.loader is not None
    storage = module_from_spec(spec)
    spec.loader.exec_module(storage)
    return storage.PriorityRedisStorage


def prepare_consumer() -> None:
    """Prepare this process as a worker; Reverie's options follow `--` on huey's command line."""
    from pipeline.bootstrap import mask

    ours = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else []
    start_program("huey_consumer … --", "Digest memories and run jobs.", mask, ours)
    # Huey's own handler would log everything a second time, without redaction.
    logging.getLogger("huey").handlers.clear()
    lower_priority(NICENESS)
    # SIGINT interrupts a task; SIGTERM, which asks the consumer to stop gracefully, is ignored by its processes.
    stop_forks_with_process(signal.SIGINT, ORPHAN_GRACE_S)
    # The garbage collector writes to all objects that it visits, which would unshare the memory of forks.
    gc.freeze()
