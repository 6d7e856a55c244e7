"""What a home knows of its other machines: its own names and keys, devices, remotes, and how far each was read.

It holds secret keys: nobody but the home's owner may read it, and nothing else is in it that could not be had again
from the remotes.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from config.paths import FileState
from pipeline.store.database import PeersTables
from pipeline.store.objects import FOLDER

# An operation by its workspace and its number in the log there.
Numbered = tuple[str, int]

# What is kept of what went on between machines.
MOST_EVENTS = 1000


@dataclass(frozen=True, slots=True)
class Identity:
    """A name of this machine among others, and the secrets behind it: the seed of its signatures (hex), an age key."""

    node: str
    name: str
    seed: str
    age: str
    made_at: str


@dataclass(frozen=True, slots=True)
class Device:
    """A machine that this one is paired with, or was; `adopted_at` is when what it wrote became this one's to send."""

    node: str
    name: str
    verify_key: str
    recipient: str
    added_at: str
    revoked_at: str | None = None
    adopted_at: str | None = None


@dataclass(frozen=True, slots=True)
class Remote:
    """Where operations travel by, what of this data directory does, and how that went last."""

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


@dataclass(frozen=True, slots=True)
class PutAside:
    """An operation that was not taken, as it came, and why."""

    id: str
    remote: str
    workspace: str
    item: Mapping[str, Any]
    reason: str
    at: str


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened between machines."""

    at: str
    remote: str
    says: str


@dataclass(frozen=True, slots=True)
class Stream:
    """How a stream stands: its last number, and how many purges and which key of the circle its oldest part knew."""

    last: int = 0
    purges: int = 0
    epoch: int = 1


class Peers:
    """What one home knows of its peers, in a file or on the server of its store."""

    def __init__(self, tables: PeersTables) -> None:
        self._tables = tables

    @property
    def exists(self) -> bool:
        """Return whether this data directory was ever told of another machine."""
        return self._tables.tell_of_peers

    @property
    def state(self) -> FileState | None:
        """Return what changes when something is written, None if only a look tells."""
        return self._tables.state

    def alone(self, patience_s: float) -> AbstractContextManager[None]:
        """Keep another process from exchanging meanwhile; raise StoreBusy if one goes on doing so."""
        return self._tables.alone(patience_s)

    def _open(self) -> AbstractContextManager[Connection]:
        return self._tables.opened()

    # Who this machine is, and who belongs to its circle

    def identities(self) -> list[Identity]:
        """List the names that this machine has or had, the present one first."""
        with self._open() as db:
            rows = db.execute("SELECT node, name, seed, age, made_at FROM identity ORDER BY made_at DESC, node DESC")
            return [Identity(*row) for row in rows]

    def add_identity(self, identity: Identity) -> None:
        """Give this machine a new name."""
        with self._open() as db:
            db.execute("INSERT INTO identity VALUES (?, ?, ?, ?, ?)", astuple(identity))

    def circle(self) -> list[tuple[int, str]]:
        """List (epoch, secret) of the circle's keys, the present one first."""
        with self._open() as db:
            return db.execute("SELECT epoch, secret FROM circle ORDER BY epoch DESC, secret DESC").fetchall()

    def add_circle(self, epoch: int, secret: str, at: str, notice: str | None = None) -> None:
        """Keep a key of the circle, with the sealed notice that tells other devices of it."""
        with self._open() as db:
            db.execute(
                "INSERT INTO circle (epoch, secret, notice, made_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (epoch, secret, notice, at),
            )

    def notices(self) -> list[str]:
        """List the sealed notices of new keys, the first first."""
        with self._open() as db:
            rows = db.execute("SELECT notice FROM circle WHERE notice IS NOT NULL ORDER BY epoch, secret")
            return [row[0] for row in rows]

    def leave_circle(self) -> None:
        """Forget the circle's keys and its devices, to join another."""
        with self._open() as db:
            db.execute("DELETE FROM circle")
            db.execute("DELETE FROM device")

    def devices(self) -> dict[str, Device]:
        """Return every device that was ever paired, by node."""
        with self._open() as db:
            rows = db.execute(
                "SELECT node, name, verify_key, recipient, added_at, revoked_at, adopted_at FROM device "
                "ORDER BY added_at, node"
            )
            return {row[0]: Device(*row) for row in rows}

    def add_device(self, device: Device) -> None:
        """Trust a device; one that was revoked stays so."""
        with self._open() as db:
            db.execute("INSERT INTO device VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", astuple(device))

    def revoke(self, nodes: Iterable[str], at: str) -> None:
        """Trust some devices no longer."""
        with self._open() as db:
            for node in nodes:
                db.execute("UPDATE device SET revoked_at = coalesce(revoked_at, ?) WHERE node = ?", (at, node))

    def note_adopted(self, node: str, at: str) -> None:
        """Note that what a device wrote is this one's to send on."""
        with self._open() as db:
            db.execute("UPDATE device SET adopted_at = ? WHERE node = ?", (at, node))

    # Remotes, and how far each was written and read

    def remotes(self) -> list[Remote]:
        """List the remotes by name."""
        with self._open() as db:
            rows = db.execute(f"SELECT {_REMOTE} FROM remote ORDER BY name")  # noqa: S608 - names of columns
            return [_remote(row) for row in rows]

    def folders(self) -> list[Path]:
        """List the folders by which memory travels."""
        return [Path(one.url.removeprefix(FOLDER)) for one in self.remotes() if one.url.startswith(FOLDER)]

    def put_remote(self, remote: Remote) -> None:
        """Keep a remote, in place of the one of its name."""
        row = asdict(remote) | {"workspaces": json.dumps(remote.workspaces), "scopes": json.dumps(remote.scopes)}
        with self._open() as db:
            db.execute("DELETE FROM remote WHERE name = ?", (remote.name,))
            db.execute(f"INSERT INTO remote ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", (*row.values(),))  # noqa: S608

    def drop_remote(self, name: str) -> None:
        """Forget a remote and how far it was read."""
        with self._open() as db:
            for table in ("remote", "sent", "stream", "held_back", "received", "put_aside"):
                column = "name" if table == "remote" else "remote"
                db.execute(f"DELETE FROM {table} WHERE {column} = ?", (name,))  # noqa: S608 - constant names

    def forget_progress(self, name: str) -> None:
        """Read a remote again from its beginning."""
        with self._open() as db:
            db.execute("DELETE FROM received WHERE remote = ?", (name,))

    def sent(self, remote: str) -> dict[str, int]:
        """Return up to which operation each workspace was sent."""
        with self._open() as db:
            return dict(db.execute("SELECT workspace, seq FROM sent WHERE remote = ?", (remote,)).fetchall())

    def stream(self, remote: str, node: str) -> Stream:
        """Return how a node's stream on a remote was written."""
        with self._open() as db:
            sought = "SELECT last, purges, epoch FROM stream WHERE remote = ? AND node = ?"
            row = db.execute(sought, (remote, node)).fetchone()
            return Stream(*row) if row else Stream()

    def note_sent(
        self,
        remote: str,
        node: str,
        stream: Stream,
        workspaces: Mapping[str, int],
        tried: Sequence[Numbered] = (),
        refused: Iterable[Numbered] = (),
    ) -> None:
        """Note what was sent, and that what was written by oneself need not be read; what was refused is held back."""
        first, last = self.stream(remote, node).last + 1, stream.last
        with self._open() as db:
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
        """List what a remote refused when it was sent there; it is sent again at every exchange."""
        with self._open() as db:
            sought = "SELECT workspace, seq FROM held_back WHERE remote = ? ORDER BY workspace, seq"
            return db.execute(sought, (remote,)).fetchall()

    def release(self, remote: str, numbers: Sequence[Numbered]) -> None:
        """Hold back no longer what is not in the log any more under its number."""
        with self._open() as db:
            _release(db, remote, numbers)

    def received(self, remote: str) -> dict[str, list[tuple[int, int]]]:
        """Return which stretches of each node's stream were read, in order."""
        found: dict[str, list[tuple[int, int]]] = {}
        with self._open() as db:
            sought = "SELECT node, first, last FROM received WHERE remote = ? ORDER BY node, first"
            for node, first, last in db.execute(sought, (remote,)):
                found.setdefault(node, []).append((first, last))
        return found

    def note_received(self, remote: str, node: str, first: int, last: int) -> None:
        """Note that a stretch of a node's stream was read."""
        with self._open() as db:
            _cover(db, remote, node, first, last)

    # What was not taken, and what happened

    def put_aside(self, remote: str, refused: Sequence[PutAside]) -> None:
        """Keep what was not taken, so that it can be looked at, and tried again."""
        with self._open() as db:
            db.execute("DELETE FROM put_aside WHERE remote = ?", (remote,))
            db.executemany("DELETE FROM put_aside WHERE id = ?", [(one.id,) for one in refused])
            db.executemany(
                "INSERT INTO put_aside (id, remote, workspace, item, reason, at) VALUES (?, ?, ?, ?, ?, ?) "
                "ON CONFLICT DO NOTHING",
                [(one.id, one.remote, one.workspace, json.dumps(one.item), one.reason, one.at) for one in refused],
            )

    def purge_put_aside(self, memory_ids: Sequence[str]) -> None:
        """Delete for good what was not taken of purged memories."""
        with self._open() as db:
            sought = "DELETE FROM put_aside WHERE item LIKE ?"
            gone = sum(db.execute(sought, (f"%{memory_id}%",)).rowcount for memory_id in memory_ids)
        if gone:
            self._tables.checkpoint()

    def list_put_aside(self, remote: str | None = None) -> list[PutAside]:
        """List what was not taken."""
        with self._open() as db:
            rows = db.execute(
                "SELECT id, remote, workspace, item, reason, at FROM put_aside WHERE remote = coalesce(?, remote) "
                "ORDER BY at, id",
                (remote,),
            )
            return [PutAside(one, by, workspace, json.loads(item), *rest) for one, by, workspace, item, *rest in rows]

    def log(self, at: str, remote: str, says: str) -> None:
        """Note that something happened, unless it is what happened last."""
        with self._open() as db:
            last = db.execute("SELECT says FROM event WHERE remote = ? ORDER BY seq DESC LIMIT 1", (remote,)).fetchone()
            if last is None or last[0] != says:
                db.execute("INSERT INTO event (at, remote, says) VALUES (?, ?, ?)", (at, remote, says))
                db.execute("DELETE FROM event WHERE seq <= (SELECT max(seq) FROM event) - ?", (MOST_EVENTS,))

    def events(self, limit: int) -> list[Event]:
        """List what happened, the last first."""
        with self._open() as db:
            rows = db.execute("SELECT at, remote, says FROM event ORDER BY seq DESC LIMIT ?", (limit,))
            return [Event(*row) for row in rows]


def _release(db: Connection, remote: str, numbers: Iterable[Numbered]) -> None:
    sought = "DELETE FROM held_back WHERE remote = ? AND workspace = ? AND seq = ?"
    db.executemany(sought, [(remote, *number) for number in numbers])


def _cover(db: Connection, remote: str, node: str, first: int, last: int) -> None:
    """Join a stretch with those that it touches."""
    touching = db.execute(
        "DELETE FROM received WHERE remote = ? AND node = ? AND first <= ? AND last >= ? RETURNING first, last",
        (remote, node, last + 1, first - 1),
    ).fetchall()
    first, last = min([first, *(row[0] for row in touching)]), max([last, *(row[1] for row in touching)])
    db.execute("INSERT INTO received VALUES (?, ?, ?, ?)", (remote, node, first, last))


_REMOTE = "name, url, workspaces, scopes, sealed, added_at, last_ok_at, error, bytes, behind"


def _remote(row: Sequence[Any]) -> Remote:
    name, url, workspaces, scopes, sealed, *rest = row
    return Remote(name, url, tuple(json.loads(workspaces)), tuple(json.loads(scopes)), bool(sealed), *rest)
