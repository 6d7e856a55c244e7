"""The sync state of a data directory in a file next to the workspaces."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout
from sqlite_utils import Database, Migrations

from config.paths import FileState, file_state
from pipeline.errors import StoreBusy
from pipeline.store.database import PeersTables
from pipeline.store.home_file import HomeFile

MIGRATIONS = Migrations("reverie-peers")


@MIGRATIONS()
def s001_schema(db: Database) -> None:
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


class PeersFile(HomeFile, PeersTables):
    """The file of the sync state."""

    def __init__(self, file: Path) -> None:
        super().__init__(file, MIGRATIONS)

    @property
    def has_peers(self) -> bool:
        """Return whether the file exists."""
        return self.file.is_file()

    @property
    def state(self) -> FileState:
        """Return a value that changes with every write."""
        try:
            return file_state(self.file)
        except FileNotFoundError:
            return (0, 0, 0)

    @contextmanager
    def alone(self, patience_s: float) -> Iterator[None]:
        """Exclude other processes from the exchange; raise StoreBusy if one is running."""
        self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with FileLock(self.file.with_suffix(".lock"), timeout=patience_s):
                yield
        except Timeout as error:
            raise StoreBusy("another exchange is still running") from error
