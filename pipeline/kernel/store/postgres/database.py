"""A workspace's rows on the server: one writer at a time, concurrent readers, typed errors."""

import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from sqlite3 import Connection
from typing import cast

from config.paths import is_workspace_id
from pipeline.kernel.errors import NO_WORKSPACE, NotFound, StoreBusy
from pipeline.kernel.lru import LruCache
from pipeline.kernel.store import meta, oplog, row_hashes
from pipeline.kernel.store.database import (
    Database,
    Databases,
    StoreState,
    WakeUps,
    WriteConnection,
    WriterProfile,
    wake_no_worker,
)
from pipeline.kernel.store.log_start import never_synced, start_log
from pipeline.kernel.store.postgres import schema
from pipeline.kernel.store.postgres.connection import PostgresConnection
from pipeline.kernel.store.postgres.server import Server

MOST_DATABASES = 1024
NO_LOG = (0, 0, 0)
# How long a write may be idle and block other writers.
LONGEST_IDLE_S = 60

_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL reverie.workspace = '{id}'"
# Every statement of a write sees what was committed before the write got the lock.
_WRITE = f"""
BEGIN; SET LOCAL reverie.workspace = '{{id}}'; SET LOCAL lock_timeout = {{timeout_ms}};
SET LOCAL idle_in_transaction_session_timeout = '{LONGEST_IDLE_S}s';
SELECT {schema.LOCK_SCHEMA}, pg_advisory_xact_lock(hashtextextended('{{id}}', 0));
{schema.LIST_APPLIED}
"""
_COMMIT = """
UPDATE workspace SET commits = commits + 1, written_ns = (extract(epoch FROM clock_timestamp()) * 1000000000)::int8
WHERE id = '{id}' AND pg_current_xact_id_if_assigned() IS NOT NULL;
COMMIT
"""


class PostgresDatabase(Database):
    """A workspace on a server, for reading from any thread and writing from one at a time."""

    def __init__(
        self,
        server: Server,
        workspace_id: str,
        profile: WriterProfile,
        on_commit: Callable[[WakeUps], None] = wake_no_worker,
    ) -> None:
        self._server = server
        self._on_commit = on_commit
        self._timeout_s = profile.busy_timeout_ms / 1000
        self._read = _READ.format(id=workspace_id)
        self._write = _WRITE.format(id=workspace_id, timeout_ms=profile.busy_timeout_ms)
        self._commit = _COMMIT.format(id=workspace_id)
        # Threads of one process wait for each other without using a connection each.
        self._lock = threading.Lock()
        self._local = threading.local()

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Run a transaction; commit on success, roll back on any error."""
        if not self._lock.acquire(timeout=self._timeout_s):
            raise StoreBusy("another write uses the store")
        try:
            with self._server.begun(self._write) as (writer, (applied,)):
                schema.check_applied(applied)
                writer.wake_ups, writer.changed_rows = set(), set()
                db = cast("Connection", writer)
                yield db
                row_hashes.update_changed(cast("WriteConnection", writer))
                oplog.record(db)
                writer.commit(self._commit)
                wake_ups = writer.wake_ups
        finally:
            self._lock.release()
        if wake_ups:
            self._on_commit(wake_ups)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Run reads on one consistent snapshot; nested reads share the outer snapshot."""
        outer: PostgresConnection | None = getattr(self._local, "reader", None)
        if outer is not None:
            yield cast("Connection", outer)
            return
        with self._server.begun(self._read) as (reader, _):
            self._local.reader = reader
            try:
                yield cast("Connection", reader)
            finally:
                self._local.reader = None

    def measure(self) -> int:
        """Return the size of the workspace's share of the tables in bytes."""
        with self.read() as db:
            return int(db.execute(_MEASURE).fetchone()[0])

    def close(self) -> None:
        """Do nothing: the connections belong to the server object."""


# Estimated from each table by the workspace's share of memories.
_MEASURE = """
SELECT sum(pg_total_relation_size(c.oid)) * own.memories / greatest(all_of.memories, own.memories, 1)
FROM pg_class c, (SELECT count(*) AS memories FROM memory) own,
    (SELECT reltuples AS memories FROM pg_class WHERE oid = 'memory'::regclass) all_of
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
GROUP BY own.memories, all_of.memories
"""


class PostgresDatabases(Databases):
    """The workspaces on a server.

    `on_commit` is called with a workspace and the work that a commit queued; see `SqliteDatabases` for `is_synced`.
    """

    def __init__(
        self,
        server: Server,
        profile: WriterProfile,
        on_commit: Callable[[str, WakeUps], None] = wake_no_worker,
        is_synced: Callable[[], bool] = never_synced,
    ) -> None:
        self._server = server
        self._profile = profile
        self._on_commit = on_commit
        self._is_synced = is_synced
        self._known: LruCache[str, PostgresDatabase] = LruCache(MOST_DATABASES)

    def get(self, workspace_id: str, *, create: bool = False) -> Database:
        """Return a workspace's database; raise NotFound if it does not exist and `create` is not set."""
        return self._known.get(workspace_id, lambda _: True, partial(self._find, workspace_id, create))

    def _find(self, workspace_id: str, create: bool) -> PostgresDatabase:
        if not is_workspace_id(workspace_id):
            raise ValueError("not a workspace id")
        database = PostgresDatabase(self._server, workspace_id, self._profile, partial(self._on_commit, workspace_id))
        if not self.exists(workspace_id):
            if not create:
                raise NotFound(NO_WORKSPACE)
            with database.write() as db:
                db.execute("INSERT INTO workspace VALUES (?) ON CONFLICT DO NOTHING", (workspace_id,))
                if meta.get(db, meta.NODE) is None:
                    meta.put(db, meta.NODE, secrets.token_hex(4))
            if self._is_synced():
                start_log(database)
        return database

    def ids(self) -> list[str]:
        """List the existing workspaces by name."""
        with self._server.read() as home:
            return [name for (name,) in home.execute("SELECT id FROM workspace ORDER BY id")]

    def exists(self, workspace_id: str) -> bool:
        """Return whether a workspace exists; workspaces are never deleted."""
        if self._known.peek(workspace_id) is not None:
            return True
        with self._server.read() as home:
            return home.execute("SELECT 1 FROM workspace WHERE id = ?", (workspace_id,)).fetchone() is not None

    def states(self) -> Mapping[str, StoreState]:
        """Return the time of the last write and the number of writes, by workspace."""
        with self._server.read() as home:
            rows = home.execute("SELECT id, written_ns, commits FROM workspace ORDER BY id")
            return {name: ((0, written, commits), NO_LOG) for name, written, commits in rows}

    def close(self) -> None:
        """Close every connection."""
        self._server.close()
