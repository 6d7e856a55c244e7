"""An exchange with a remote: who belongs to the circle, what others wrote, what this machine writes.

meet → receive (check each operation, merge, put aside what cannot be taken) → send → tidy
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from config.paths import is_workspace_id
from pipeline.errors import PeerRefused, RemoteUnreachable, ReverieError
from pipeline.store import oplog
from pipeline.store.database import Database
from pipeline.store.log_start import start_log
from pipeline.store.oplog import Operation
from pipeline.store.peers import Numbered, Peers, PutAside, Remote
from pipeline.sync import merge
from pipeline.sync.circle import Circle
from pipeline.sync.remotes.objects import MOST_ITEMS, ObjectRemote
from pipeline.sync.remotes.remote import Item, Outgoing, RemoteDoor
from pipeline.sync.segment import Segment
from pipeline.sync.signed import check_signature, read_item, sign_all
from pipeline.times import utc_now

# A part of a snapshot holds no more.
MOST_IN_SNAPSHOT = 20_000
# What is put aside is kept as it came, to be tried again; of a flood the first, the others are read again.
MOST_PUT_ASIDE = 1000


@dataclass(frozen=True)
class Home:
    """What an exchange needs of a home: its peers, its workspaces, and which of them take nothing in."""

    peers: Peers
    workspace_ids: Callable[[], Sequence[str]]
    database: Callable[[str], Database]
    refusal: Callable[[str], str | None]


@dataclass(slots=True)
class Exchanged:
    """What came of an exchange: how much was taken in, was known, was sent; what was put aside."""

    applied: int = 0
    known: int = 0
    sent: int = 0
    bytes: int = 0
    put_aside: list[PutAside] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def open_remote(home: Home, remote: Remote) -> RemoteDoor:
    """Return the door to a remote."""
    if remote.url.startswith("http"):
        # A client for HTTP is not loaded by a server that only answers.
        from pipeline.sync.remotes.http import HttpRemote

        return HttpRemote(remote, home.peers)
    return ObjectRemote(remote, home.peers, lambda segment: _is_mine(home, segment))


def exchange(home: Home, remote: Remote) -> Exchanged:
    """Exchange with one remote, and keep how that went; raise RemoteUnreachable where it cannot be used."""
    done = Exchanged()
    circle = Circle(home.peers)
    for workspace in list_travelling(home, remote):
        keep_log(workspace, home.database(workspace), circle)
    try:
        door = open_remote(home, remote)
        door.meet()
        _adopt_revoked(home)
        _receive(home, remote, door, done)
        _send(home, remote, door, done)
        behind = len(done.put_aside)
    except (RemoteUnreachable, PeerRefused) as error:
        home.peers.put_remote(replace(remote, error=str(error)))
        home.peers.log(utc_now(), remote.name, str(error))
        raise
    problem = "; ".join(dict.fromkeys(done.refused)) or None
    fresh = replace(remote, last_ok_at=utc_now(), error=problem, bytes=door.size(), behind=behind)
    home.peers.put_remote(fresh)
    if done.applied or done.sent:
        home.peers.log(utc_now(), remote.name, f"{done.applied} taken in, {done.sent} sent")
    return done


def _receive(home: Home, remote: Remote, door: RemoteDoor, done: Exchanged) -> None:
    waiting = [one.item for one in home.peers.list_quarantined(remote.name)]
    if waiting:
        _take(home, remote, waiting, done)
    for stretch in door.receive():
        if stretch.refused is not None:
            writer = Circle(home.peers).name_of(stretch.writer)
            says = f"not read: {writer} ({stretch.first} to {stretch.last}): {stretch.refused}"
            done.refused.append(says)
            home.peers.log(utc_now(), remote.name, says)
            continue
        _take(home, remote, stretch.items, done)
        if len(done.put_aside) > MOST_PUT_ASIDE:
            del done.put_aside[MOST_PUT_ASIDE:]
            continue
        home.peers.put_aside(remote.name, done.put_aside)
        door.note_read(stretch)
    home.peers.put_aside(remote.name, done.put_aside)


def _take(home: Home, remote: Remote, items: Iterable[Item], done: Exchanged) -> None:
    by_workspace: dict[str, list[Item]] = {}
    for item in items:
        workspace = item.get("workspace") if isinstance(item, Mapping) else None
        by_workspace.setdefault(workspace if isinstance(workspace, str) else "", []).append(item)
    for workspace, some in by_workspace.items():
        if remote.workspaces and workspace not in remote.workspaces:
            continue
        merged = take_in(home, workspace, some, remote.name)
        done.applied += merged.applied
        done.known += merged.known
        done.put_aside += [
            PutAside(str(some[place].get("id"))[:64], remote.name, workspace, some[place], reason, utc_now())
            for place, reason in merged.put_aside
            if isinstance(some[place], Mapping)
        ]


def take_in(home: Home, workspace: str, items: Sequence[Any], via: str) -> merge.Merged:
    """Merge operations that came for a workspace, each checked by itself."""
    closed = home.refusal(workspace) if is_workspace_id(workspace) else "it names no workspace"
    if closed is not None:
        return merge.Merged(put_aside=[(place, closed) for place in range(len(items))])
    circle = Circle(home.peers)
    sound: list[Operation] = []
    places: list[int] = []
    refused: list[tuple[int, str]] = []
    for place, item in enumerate(items):
        try:
            operation = read_item(item, via)
            check_signature(workspace, operation, circle)
        except PeerRefused as error:
            refused.append((place, str(error)))
        else:
            sound.append(operation)
            places.append(place)
    merged = merge.merge(home.database(workspace), sound) if sound else merge.Merged()
    late = [(places[place], reason) for place, reason in merged.put_aside]
    return replace(merged, put_aside=sorted([*refused, *late]))


def _adopt_revoked(home: Home) -> None:
    """Send on what a revoked device wrote: nobody reads its own segments any more."""
    for device in home.peers.devices().values():
        if device.revoked_at is not None and device.adopted_at is None:
            for workspace in home.workspace_ids():
                with home.database(workspace).write() as db:
                    oplog.adopt(db, device.node)
            home.peers.record_adopted(device.node, utc_now())


def _send(home: Home, remote: Remote, door: RemoteDoor, done: Exchanged) -> None:
    fresh = _gather(home, remote, home.peers.sent(remote.name), MOST_ITEMS)
    for outgoing in chain(_gather_held_back(home, remote), fresh):
        if outgoing.items:
            sent = door.send(outgoing)
            done.bytes += sent.bytes
            done.sent += len(outgoing.items)
            done.refused += sent.refused
    purges = sum(count_purges(home, workspace) for workspace in list_travelling(home, remote))
    if door.needs_tidying(purges):
        reached = home.peers.sent(remote.name)
        done.bytes += door.tidy(_gather(home, remote, {}, MOST_IN_SNAPSHOT, through=reached), purges)


def _gather_held_back(home: Home, remote: Remote) -> Iterator[Outgoing]:
    """Go through what a remote refused before."""
    circle, held = Circle(home.peers), home.peers.held_back(remote.name)[:MOST_ITEMS]
    for workspace in {name for name, _ in held}.intersection(list_travelling(home, remote)):
        numbers = [seq for name, seq in held if name == workspace]
        with home.database(workspace).read() as db:
            found = oplog.at(db, numbers)
        # Purged meanwhile, or logged anew under another number.
        gone = set(numbers) - {seq for seq, _ in found}
        if gone:
            home.peers.release(remote.name, [(workspace, seq) for seq in gone])
        signed = list(sign_all(workspace, found, circle))
        yield Outgoing([item for _, item in signed], [(workspace, seq) for seq, _ in signed])


def list_travelling(home: Home, remote: Remote) -> list[str]:
    """List the workspaces of this home that travel by a remote."""
    return [one for one in home.workspace_ids() if not remote.workspaces or one in remote.workspaces]


def count_purges(home: Home, workspace: str) -> int:
    """Count the tombstones of a workspace."""
    with home.database(workspace).read() as db:
        return oplog.count_purges(db)


def count_ahead(home: Home, remote: Remote) -> int:
    """Count what waits to be sent."""
    sent, waiting = home.peers.sent(remote.name), len(home.peers.held_back(remote.name))
    for workspace in list_travelling(home, remote):
        with home.database(workspace).read() as db:
            waiting += oplog.count_after(db, sent.get(workspace, 0), remote.scopes, remote.name)
    return waiting


def _gather(
    home: Home, remote: Remote, sent: Mapping[str, int], most: int, through: Mapping[str, int] | None = None
) -> Iterator[Outgoing]:
    """Go through what travels by a remote after some numbers, up to some, so many at a time."""
    circle = Circle(home.peers)
    items: list[Item] = []
    numbers: list[Numbered] = []
    reached: dict[str, int] = {}
    for workspace in list_travelling(home, remote):
        keep_log(workspace, home.database(workspace), circle)
        number = sent.get(workspace, 0)
        while True:
            with home.database(workspace).read() as db:
                found = oplog.after(db, number, most - len(items), remote.scopes, remote.name)
                end = oplog.last_seq(db) if len(found) < most - len(items) else None
            number = end if end is not None else found[-1][0]
            if through is not None:
                found = [one for one in found if one[0] <= through.get(workspace, 0)]
            for seq, item in sign_all(workspace, found, circle):
                items.append(item)
                numbers.append((workspace, seq))
            reached[workspace] = number
            if len(items) >= most:
                yield Outgoing(items, numbers, dict(reached))
                items, numbers, reached = [], [], {}
            if end is not None:
                break
    yield Outgoing(items, numbers, reached)


def keep_log(workspace: str, database: Database, circle: Circle | None) -> None:
    """Have a workspace log its operations, stamped with the present name of this device if it belongs to a circle."""
    with database.read() as db:
        is_complete = oplog.is_complete(db)
    if not is_complete:
        if circle is not None:
            # A store that was put in place of another one numbers its operations anew.
            circle.peers.forget_sent(workspace)
        start_log(database)
    if circle is not None:
        _take_node(database, circle)


def _take_node(database: Database, circle: Circle) -> None:
    with database.read() as db:
        known = oplog.is_node(db, circle.identity.node)
    if not known:
        with database.write() as db:
            oplog.take_node(db, circle.identity.node, [one.node for one in circle.identities])


def _is_mine(home: Home, segment: Segment) -> bool:
    """Tell whether this machine knows everything that a segment holds."""
    by_workspace: dict[str, list[Operation]] = {}
    for item in segment.items:
        by_workspace.setdefault(str(item.get("workspace")), []).append(read_item(item, ""))
    here = set(home.workspace_ids())
    for workspace, operations in by_workspace.items():
        if workspace not in here:
            return False
        with home.database(workspace).read() as db:
            if merge.list_new(db, operations):
                return False
    return True


def exchange_all(home: Home, names: Sequence[str] = ()) -> dict[str, Exchanged | ReverieError]:
    """Exchange with every remote, or with some; one that fails does not keep others from their turn."""
    found: dict[str, Exchanged | ReverieError] = {}
    for remote in home.peers.remotes():
        if not names or remote.name in names:
            try:
                found[remote.name] = exchange(home, remote)
            except (RemoteUnreachable, PeerRefused) as error:
                found[remote.name] = error
    return found
