"""What a home knows of its other machines, in one file beside the workspaces."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from sqlite3 import Connection

from filelock import FileLock, Timeout
from sqlite_utils import Database, Migrations

from config.modes import close_place
from config.paths import FileState, file_state
from pipeline.errors import StoreBusy
from pipeline.store import driver
from pipeline.store.database import PeersTables
from pipeline.store.driver import as_sqlite3, sqlite_errors
from pipeline.store.failures import failure_of
from pipeline.store.migrations import make_ready

MIGRATIONS = Migrations("reverie-peers")


@MIGRATIONS()
def p001_peers(db: Database) -> None:
    """Create every table."""
    db.table("identity").create({"node": str, "name": str, "seed": str, "age": str, "made_at": str}, pk="node")
    db.table("circle").create({"secret": str, "epoch": int, "notice": str, "made_at": str}, pk="secret")
    db.table("device").create(
        {
            "node": str,
            "name": str,
            "verify_key": str,
            "recipient": str,
            "added_at": str,
            "revoked_at": str,
            "adopted_at": str,
        },
        pk="node",
    )
    db.table("remote").create(
        {
            "name": str,
            "url": str,
            "workspaces": str,
            "scopes": str,
            "sealed": int,
            "added_at": str,
            "last_ok_at": str,
            "error": str,
            "bytes": int,
            "behind": int,
        },
        pk="name",
    )
    db.table("sent").create({"remote": str, "workspace": str, "seq": int}, pk=("remote", "workspace"))
    stream = {"remote": str, "node": str, "last": int, "purges": int, "epoch": int}
    db.table("stream").create(stream, pk=("remote", "node"))
    held = ("remote", "workspace", "seq")
    db.table("held_back").create({"remote": str, "workspace": str, "seq": int}, pk=held)
    db.table("received").create({"remote": str, "node": str, "first": int, "last": int}, pk=("remote", "node", "first"))
    aside = {"id": str, "remote": str, "workspace": str, "item": str, "reason": str, "at": str}
    db.table("put_aside").create(aside, pk="id")
    db.table("event").create({"seq": int, "at": str, "remote": str, "says": str}, pk="seq")


class PeersFile(PeersTables):
    """The file of a home that keeps its own; opened for each question, as few are asked."""

    def __init__(self, file: Path) -> None:
        self.file = file

    @property
    def tell_of_peers(self) -> bool:
        """Tell whether there is such a file."""
        return self.file.is_file()

    @property
    def state(self) -> FileState:
        """Return what changes when something is written."""
        try:
            return file_state(self.file)
        except FileNotFoundError:
            return (0, 0, 0)

    @contextmanager
    def opened(self) -> Iterator[Connection]:
        """Run one transaction; roll back on any error."""
        is_new = not self.file.exists()
        self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with closing(driver.connect(self.file, "rwc", timeout_s=10)) as connection:
                if is_new:
                    close_place(self.file)
                make_ready(connection, self.file, MIGRATIONS)
                connection.execute("PRAGMA secure_delete=ON")
                connection.execute("BEGIN IMMEDIATE")
                # What is not committed is undone when it is closed.
                yield connection
                connection.execute("COMMIT")
        except sqlite_errors(sqlite3.DatabaseError) as error:
            raise failure_of(error, self.file) or as_sqlite3(error) from error

    def checkpoint(self) -> None:
        """Move the whole write-ahead log into the file and empty it; raise StoreBusy when a reader is in the way."""
        with closing(driver.connect(self.file, timeout_s=10)) as connection:
            busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if busy:
            raise StoreBusy(f"a reader keeps the write-ahead log of {self.file} from being emptied")

    @contextmanager
    def alone(self, patience_s: float) -> Iterator[None]:
        """Keep another process from exchanging meanwhile; raise StoreBusy where one goes on doing so."""
        self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with FileLock(self.file.with_suffix(".lock"), timeout=patience_s):
                yield
        except Timeout as error:
            raise StoreBusy("another exchange is still under way") from error

    def close(self) -> None:
        """Do nothing: it is open for no longer than a question."""
