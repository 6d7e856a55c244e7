"""Sync state of a data directory: its identities and keys, devices, remotes, and how far each was read.

It contains secret keys, so only the data directory's owner may read it. Everything else can be read from the remotes
again.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import astuple, dataclass
from pathlib import Path
from sqlite3 import Connection
from typing import Any, Literal

from pipeline.kernel.store.database import HomeTables
from pipeline.kernel.store.objects import FOLDER
from pipeline.kernel.store.rows import DELETE, Rows, Table

# An operation's workspace and its number in the log.
Numbered = tuple[str, int]

# Number of sync events to keep.
MOST_EVENTS = 1000


@dataclass(frozen=True, slots=True)
class Identity:
    """A name of this machine and its secrets: the seed of its signatures (hex), and an age key."""

    node: str
    name: str
    seed: str
    age: str
    made_at: str


@dataclass(frozen=True, slots=True)
class Device:
    """A machine that is or was paired; `adopted_at` is when this machine took over sending its operations."""

    node: str
    name: str
    verify_key: str
    recipient: str
    added_at: str
    revoked_at: str | None = None
    adopted_at: str | None = None


@dataclass(frozen=True, slots=True)
class Remote:
    """A remote, its settings, and the result of the last exchange."""

    name: str
    url: str
    workspaces: tuple[str, ...]
    scopes: tuple[str, ...]
    sealed: bool
    added_at: str
    last_ok_at: str | None = None
    error: str | None = None
    bytes: int = 0
    behind: int = 0


_REMOTES = Rows(Remote, "remote")


@dataclass(frozen=True, slots=True)
class PutAside:
    """An operation that was quarantined, as received, and the reason."""

    id: str
    remote: str
    workspace: str
    item: Mapping[str, Any]
    reason: str
    at: str


_QUARANTINED = Rows(PutAside, "put_aside")


@dataclass(frozen=True, slots=True)
class Event:
    """A sync event."""

    at: str
    remote: str
    says: str


@dataclass(frozen=True, slots=True)
class Stream:
    """The state of a stream: its last number, and the number of purges and the circle key at its oldest part."""

    last: int = 0
    purges: int = 0
    epoch: int = 1


class Peers:
    """The sync state of a data directory, in a file or on the server of its store."""

    def __init__(self, tables: HomeTables) -> None:
        self._tables = tables

    @property
    def exists(self) -> bool:
        """Return whether this data directory was ever paired or got a remote."""
        return bool(
            self._tables.query("SELECT 1 FROM identity UNION SELECT 1 FROM circle UNION SELECT 1 FROM remote LIMIT 1")
        )

    def alone(self, patience_s: float) -> AbstractContextManager[None]:
        """Exclude other processes from the exchange; raise StoreBusy if one is running."""
        return self._tables.alone(patience_s)

    # Who this machine is, and who belongs to its circle

    def identities(self) -> list[Identity]:
        """List the identities of this machine, the present one first."""
        return self._tables.list_rows(
            Identity, "SELECT node, name, seed, age, made_at FROM identity ORDER BY made_at DESC, node DESC"
        )

    def add_identity(self, identity: Identity) -> None:
        """Give this machine a new identity."""
        self._tables.run("INSERT INTO identity VALUES (?, ?, ?, ?, ?)", astuple(identity))

    def circle(self) -> list[tuple[int, str]]:
        """List (epoch, secret) of the circle's keys, the present one first."""
        return self._tables.query("SELECT epoch, secret FROM circle ORDER BY epoch DESC, secret DESC")

    def add_circle(self, epoch: int, secret: str, at: str, notice: str | None = None) -> None:
        """Store a key of the circle with the sealed notice for other devices."""
        self._tables.run(
            "INSERT INTO circle (epoch, secret, notice, made_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (epoch, secret, notice, at),
        )

    def notices(self) -> list[str]:
        """List the sealed notices of new keys, the first first."""
        return self._tables.list_rows(str, "SELECT notice FROM circle WHERE notice IS NOT NULL ORDER BY epoch, secret")

    def leave_circle(self) -> None:
        """Delete the circle's keys and devices, to join another circle."""
        with self._tables.write() as db:
            db.execute("DELETE FROM circle")
            db.execute("DELETE FROM device")

    def devices(self) -> dict[str, Device]:
        """Return every device that was ever paired, by node."""
        devices = self._tables.list_rows(
            Device,
            "SELECT node, name, verify_key, recipient, added_at, revoked_at, adopted_at FROM device "
            "ORDER BY added_at, node",
        )
        return {device.node: device for device in devices}

    def add_device(self, device: Device) -> None:
        """Trust a device; a revoked device stays revoked."""
        self._tables.run("INSERT INTO device VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", astuple(device))

    def revoke(self, nodes: Iterable[str], at: str) -> None:
        """Revoke devices."""
        self._tables.run(
            "UPDATE device SET revoked_at = coalesce(revoked_at, ?) WHERE node IN (SELECT value FROM json_each(?))",
            (at, json.dumps(list(nodes))),
        )

    def record_adopted(self, node: str, at: str) -> None:
        """Record that this machine sends a device's operations from now on."""
        self._tables.run("UPDATE device SET adopted_at = ? WHERE node = ?", (at, node))

    # Remotes and progress

    def remotes(self) -> list[Remote]:
        """List the remotes by name."""
        with self._tables.read() as db:
            return _REMOTES.fetch(db, "ORDER BY name")

    def folders(self) -> list[Path]:
        """List the folders that are remotes."""
        return [Path(remote.url.removeprefix(FOLDER)) for remote in self.remotes() if remote.url.startswith(FOLDER)]

    def put_remote(self, remote: Remote) -> None:
        """Store a remote, replacing the one with its name."""
        with self._tables.write() as db:
            db.execute("DELETE FROM remote WHERE name = ?", (remote.name,))
            db.execute(_REMOTES.insert, _REMOTES.values(remote))

    def drop_remote(self, name: str) -> None:
        """Delete a remote and its progress."""
        with self._tables.write() as db:
            for table in ("remote", "sent", "stream", "held_back", "received", "put_aside"):
                column = "name" if table == "remote" else "remote"
                db.execute(f"DELETE FROM {table} WHERE {column} = ?", (name,))  # noqa: S608 - constant names

    def forget_progress(self, name: str) -> None:
        """Read a remote again from its start."""
        self._tables.run("DELETE FROM received WHERE remote = ?", (name,))

    def sent(self, remote: str) -> dict[str, int]:
        """Return the last sent operation per workspace."""
        return dict(self._tables.query("SELECT workspace, seq FROM sent WHERE remote = ?", (remote,)))

    def forget_sent(self, column: Literal["workspace", "remote"], name: str) -> None:
        """Send a workspace, or every operation to a remote, again from the first operation."""
        with self._tables.write() as db:
            for table in ("sent", "held_back"):
                db.execute(f"DELETE FROM {table} WHERE {column} = ?", (name,))  # noqa: S608 - constant names

    def stream(self, remote: str, node: str) -> Stream:
        """Return the state of a node's stream on a remote."""
        sought = "SELECT last, purges, epoch FROM stream WHERE remote = ? AND node = ?"
        return self._tables.find_row(Stream, sought, (remote, node)) or Stream()

    def record_sent(
        self,
        remote: str,
        node: str,
        stream: Stream,
        workspaces: Mapping[str, int],
        tried: Sequence[Numbered] = (),
        refused: Iterable[Numbered] = (),
    ) -> None:
        """Record sent operations, and that this machine need not read its own segment; hold back refused operations."""
        first, last = self.stream(remote, node).last + 1, stream.last
        with self._tables.write() as db:
            db.execute(
                "INSERT INTO stream VALUES (?, ?, ?, ?, ?) ON CONFLICT (remote, node) DO UPDATE SET "
                "last = excluded.last, purges = excluded.purges, epoch = excluded.epoch",
                (remote, node, stream.last, stream.purges, stream.epoch),
            )
            db.executemany(
                "INSERT INTO sent VALUES (?, ?, ?) ON CONFLICT (remote, workspace) DO UPDATE SET seq = excluded.seq",
                [(remote, workspace, seq) for workspace, seq in workspaces.items()],
            )
            _release(db, remote, tried)
            held = "INSERT INTO held_back VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
            db.executemany(held, [(remote, *number) for number in refused])
            if first <= last:
                _cover(db, remote, node, first, last)

    def held_back(self, remote: str) -> list[Numbered]:
        """List the operations that a remote refused; they are sent again at every exchange."""
        return self._tables.query(
            "SELECT workspace, seq FROM held_back WHERE remote = ? ORDER BY workspace, seq", (remote,)
        )

    def release(self, remote: str, numbers: Sequence[Numbered]) -> None:
        """Drop held-back operations that are no longer in the log under their number."""
        with self._tables.write() as db:
            _release(db, remote, numbers)

    def received(self, remote: str) -> dict[str, list[tuple[int, int]]]:
        """Return the ranges of each node's stream that were read, in order."""
        ranges: dict[str, list[tuple[int, int]]] = {}
        sought = "SELECT node, first, last FROM received WHERE remote = ? ORDER BY node, first"
        for node, first, last in self._tables.query(sought, (remote,)):
            ranges.setdefault(node, []).append((first, last))
        return ranges

    def record_received(self, remote: str, node: str, first: int, last: int) -> None:
        """Record that a range of a node's stream was read."""
        with self._tables.write() as db:
            _cover(db, remote, node, first, last)

    # Quarantine and events

    def put_aside(self, remote: str, refused: Sequence[PutAside]) -> None:
        """Quarantine operations, to inspect them and try again."""
        with self._tables.write() as db:
            db.execute("DELETE FROM put_aside WHERE remote = ?", (remote,))
            db.executemany("DELETE FROM put_aside WHERE id = ?", [(operation.id,) for operation in refused])
            _QUARANTINED.store(db, refused, "ON CONFLICT DO NOTHING")

    def list_quarantined(self, remote: str | None = None) -> list[PutAside]:
        """List quarantined operations."""
        with self._tables.read() as db:
            return _QUARANTINED.fetch(db, "WHERE remote = coalesce(?, remote) ORDER BY at, id", (remote,))

    def log(self, at: str, remote: str, says: str) -> None:
        """Record an event, unless it repeats the last one."""
        with self._tables.write() as db:
            last = db.execute("SELECT says FROM event WHERE remote = ? ORDER BY seq DESC LIMIT 1", (remote,)).fetchone()
            if last is None or last[0] != says:
                db.execute("INSERT INTO event (at, remote, says) VALUES (?, ?, ?)", (at, remote, says))
                db.execute("DELETE FROM event WHERE seq <= (SELECT max(seq) FROM event) - ?", (MOST_EVENTS,))

    def events(self, limit: int) -> list[Event]:
        """List the events, the last first."""
        return self._tables.list_rows(Event, "SELECT at, remote, says FROM event ORDER BY seq DESC LIMIT ?", (limit,))


def _release(db: Connection, remote: str, numbers: Iterable[Numbered]) -> None:
    sought = "DELETE FROM held_back WHERE remote = ? AND workspace = ? AND seq = ?"
    db.executemany(sought, [(remote, *number) for number in numbers])


def _cover(db: Connection, remote: str, node: str, first: int, last: int) -> None:
    """Merge a range with adjacent ranges."""
    touching = db.execute(
        "DELETE FROM received WHERE remote = ? AND node = ? AND first <= ? AND last >= ? RETURNING first, last",
        (remote, node, last + 1, first - 1),
    ).fetchall()
    first, last = min([first, *(row[0] for row in touching)]), max([last, *(row[1] for row in touching)])
    db.execute("INSERT INTO received VALUES (?, ?, ?, ?)", (remote, node, first, last))


TABLES = (
    Table("identity", ("node",)),
    Table("circle", ("secret",)),
    Table("device", ("node",)),
    Table("remote", ("name",)),
    Table("sent", ("remote", "workspace"), has_workspace=True),
    Table("stream", ("remote", "node")),
    Table("held_back", ("remote", "workspace", "seq"), has_workspace=True),
    Table("received", ("remote", "node", "first")),
    Table(
        "put_aside",
        ("id",),
        text=("item",),
        quoting={"item": DELETE},
        has_workspace=True,
    ),
    Table("event"),
)
