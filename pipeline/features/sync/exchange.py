"""Exchange devices and operations with a remote.

meet → receive (check each operation, merge it, or quarantine it) → send → tidy
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, product
from sqlite3 import Connection
from typing import Any

from config.paths import is_workspace_id
from pipeline.features.sync import merge
from pipeline.features.sync.circle import Circle
from pipeline.features.sync.remotes.objects import MOST_ITEMS, ObjectRemote
from pipeline.features.sync.remotes.remote import Item, Outgoing, RemoteConnection
from pipeline.features.sync.segment import Segment
from pipeline.features.sync.signed import check_signature, read_item, sign_all
from pipeline.kernel.errors import PeerRefused, RemoteUnreachable, StoreUnavailable
from pipeline.kernel.store import meta, oplog
from pipeline.kernel.store.database import Database
from pipeline.kernel.store.log_start import start_log
from pipeline.kernel.store.oplog import Operation
from pipeline.kernel.store.peers import Numbered, Peers, PutAside, Remote
from pipeline.kernel.store.purges import OWNER, PurgeAuthority, find_copies, list_unfinished
from pipeline.kernel.times import utc_now
from pipeline.write.revise import purge_existing

# Maximum number of operations in a part of a snapshot.
MOST_IN_SNAPSHOT = 20_000
# Quarantined operations are stored and tried again. Above this number they are dropped and read from the remote again.
MOST_PUT_ASIDE = 1000
# The mark of a store whose file a user replaced with an earlier copy. A restore writes the name of the snapshot.
PUT_BACK = "put back"


@dataclass(frozen=True)
class Home:
    """The parts of a data directory that an exchange needs. `refusal` says why a workspace accepts nothing."""

    peers: Peers
    workspace_ids: Callable[[], Sequence[str]]
    database: Callable[[str], Database]
    refusal: Callable[[str], str | None]


@dataclass(slots=True)
class Exchanged:
    """Result of an exchange: counts of new, known and sent operations, and those quarantined."""

    applied: int = 0
    known: int = 0
    sent: int = 0
    bytes: int = 0
    put_aside: list[PutAside] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def open_remote(home: Home, remote: Remote, restored: Collection[str] = ()) -> RemoteConnection:
    """Return the client of a remote; the stores of some workspaces were restored."""
    if remote.url.startswith("http"):
        # A server that only answers requests does not load an HTTP client.
        from pipeline.features.sync.remotes.http import HttpRemote

        return HttpRemote(remote, home.peers)
    return ObjectRemote(remote, home.peers, lambda segment: _is_mine(home, segment, restored))


def exchange(home: Home, remote: Remote) -> Exchanged:
    """Exchange with one remote and record the result. A store that cannot be used is left out.

    Raises RemoteUnreachable or PeerRefused if the remote cannot be used, StoreUnavailable if no store can.
    """
    done = Exchanged()
    try:
        restored, unusable = list_restored(home, remote)
        usable = _leave_out(home, remote, unusable, done)
        if restored:
            # A restored store has lost operations that the remote was read for.
            home.peers.forget_progress(remote.name)
        connection = open_remote(usable, remote, [*restored, *unusable])
        connection.meet()
        _adopt_revoked(home)
        _receive(usable, remote, connection, done)
        for workspace in restored:
            _record_read_again(home.database(workspace), remote)
        _send(usable, remote, connection, done, tidies=not unusable)
        behind = len(done.put_aside)
    except (RemoteUnreachable, PeerRefused, StoreUnavailable) as error:
        home.peers.put_remote(replace(remote, error=str(error)))
        home.peers.log(utc_now(), remote.name, str(error))
        raise
    problem = "; ".join(dict.fromkeys(done.refused)) or None
    fresh = replace(remote, last_ok_at=utc_now(), error=problem, bytes=connection.size(), behind=behind)
    home.peers.put_remote(fresh)
    if done.applied or done.sent:
        home.peers.log(utc_now(), remote.name, f"{done.applied} received, {done.sent} sent")
    return done


def _receive(home: Home, remote: Remote, connection: RemoteConnection, done: Exchanged) -> None:
    waiting = [quarantined.item for quarantined in home.peers.list_quarantined(remote.name)]
    if waiting:
        _take(home, remote, waiting, done)
    for stretch in connection.receive():
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
        connection.note_read(stretch)
    home.peers.put_aside(remote.name, done.put_aside)


def _take(home: Home, remote: Remote, items: Iterable[Item], done: Exchanged) -> None:
    by_workspace: dict[str, list[Item]] = {}
    for item in items:
        workspace = item.get("workspace") if isinstance(item, Mapping) else None
        by_workspace.setdefault(workspace if isinstance(workspace, str) else "", []).append(item)
    for workspace, items_of_workspace in by_workspace.items():
        if not _carries(remote, workspace):
            continue
        merged = take_in(home, workspace, items_of_workspace, remote.name)
        done.applied += merged.applied
        done.known += merged.known
        done.put_aside += [
            PutAside(
                str(items_of_workspace[index].get("id"))[:64],
                remote.name,
                workspace,
                items_of_workspace[index],
                reason,
                utc_now(),
            )
            for index, reason in merged.put_aside
            if isinstance(items_of_workspace[index], Mapping)
        ]


def take_in(home: Home, workspace: str, items: Sequence[Any], via: str) -> merge.Merged:
    """Check each operation for a workspace, and merge the valid ones."""
    closed = home.refusal(workspace) if is_workspace_id(workspace) else "it names no workspace"
    if closed is not None:
        return merge.Merged(put_aside=[(index, closed) for index in range(len(items))])
    circle = Circle(home.peers)
    sound: dict[int, Operation] = {}
    refused: list[tuple[int, str]] = []
    for index, item in enumerate(items):
        try:
            operation = read_item(item, via)
            check_signature(workspace, operation, circle)
        except PeerRefused as error:
            refused.append((index, str(error)))
        else:
            sound[index] = operation
    if not sound:
        return merge.Merged(put_aside=refused)
    merged = merge.merge(home.database(workspace), list(sound.values()))
    # They are not read again.
    home.database(workspace).sync_log()
    if merged.applied:
        _follow_purges(home, {operation.key.memory_id for operation in sound.values()})
    late = [(list(sound)[index], reason) for index, reason in merged.put_aside]
    return replace(merged, put_aside=sorted([*refused, *late]))


def _follow_purges(home: Home, memory_ids: Collection[str]) -> None:
    """Purge the copies of purged memories in other workspaces, so that none is shown or sent until a worker does it.

    One machine may purge a memory while another one moves it. `memory_ids` are those that arrived.
    """
    usable = [workspace for workspace in home.workspace_ids() if home.refusal(workspace) is None]
    pending: list[tuple[Sequence[str], PurgeAuthority]] = []
    for workspace in usable:
        # A store that cannot be used, perhaps of another remote, must not stop what has arrived for this one.
        with suppress(StoreUnavailable), home.database(workspace).read() as db:
            purges = [(purge.memory_ids, purge.by) for purge in list_unfinished(db).values()]
            pending += [(sorted(oplog.list_purged(db, memory_ids)), OWNER), *purges]
    # Most arrivals purge nothing, and there may be hundreds of workspaces.
    pending = [(ids, by) for ids, by in pending if ids]
    for workspace, (ids, by) in product(usable, pending):
        with suppress(StoreUnavailable):
            with home.database(workspace).read() as db:
                copies = find_copies(db, ids) if by.may_write(workspace) else []
            if copies:
                with home.database(workspace).write() as db:
                    purge_existing(db, [copy.id for copy in copies], by)
                home.database(workspace).sync_log()


def _adopt_revoked(home: Home) -> None:
    """Forward the operations of revoked devices, because the others no longer read their segments.

    If a store cannot be used, the next exchange tries again.
    """
    for device in home.peers.devices().values():
        if device.revoked_at is not None and device.adopted_at is None:
            with suppress(StoreUnavailable):
                for workspace in home.workspace_ids():
                    with home.database(workspace).write() as db:
                        oplog.adopt(db, device.node)
                home.peers.record_adopted(device.node, utc_now())


def _send(home: Home, remote: Remote, connection: RemoteConnection, done: Exchanged, *, tidies: bool) -> None:
    fresh = _gather(home, remote, home.peers.sent(remote.name), MOST_ITEMS)
    for outgoing in chain(_gather_held_back(home, remote), fresh):
        if outgoing.items:
            # Their numbers must not be given to other operations after a loss of power.
            for workspace in outgoing.workspaces:
                home.database(workspace).sync_log()
            sent = connection.send(outgoing)
            done.bytes += sent.bytes
            done.sent += len(outgoing.items)
            done.refused += sent.refused
    # A rewritten stream would lack the operations of the stores that are left out.
    if tidies and connection.needs_tidying(_count_purges(home, remote)):
        done.bytes += _tidy(home, remote, connection)


def mend(home: Home, remote: Remote) -> int:
    """Write this device's operations to a remote again if its files there are damaged; return how many were."""
    connection = open_remote(home, remote)
    # A file that is sealed with a new key is not damaged.
    connection.meet()
    damaged = connection.count_damaged()
    if damaged:
        home.peers.log(utc_now(), remote.name, f"{damaged} damaged or missing files of this device")
        # The files that are left contain what a restored store lacks: the next exchange reads them and sends it again.
        if not list_restored(home, remote)[0]:
            _tidy(home, remote, connection)
    return damaged


def _tidy(home: Home, remote: Remote, connection: RemoteConnection) -> int:
    purges = _count_purges(home, remote)
    reached = home.peers.sent(remote.name)
    return connection.tidy(_gather(home, remote, {}, MOST_IN_SNAPSHOT, through=reached), purges)


def _gather_held_back(home: Home, remote: Remote) -> Iterator[Outgoing]:
    """Yield the operations that a remote rejected before."""
    circle, held = Circle(home.peers), home.peers.held_back(remote.name)[:MOST_ITEMS]
    for workspace in {name for name, _ in held}.intersection(list_travelling(home, remote)):
        numbers = [seq for name, seq in held if name == workspace]
        with home.database(workspace).read() as db:
            numbered = oplog.at(db, numbers)
        # They were purged, or logged again with another number.
        gone = set(numbers) - {seq for seq, _ in numbered}
        if gone:
            home.peers.release(remote.name, [(workspace, seq) for seq in gone])
        signed = list(sign_all(workspace, numbered, circle))
        yield Outgoing([item for _, item in signed], [(workspace, seq) for seq, _ in signed])


def list_travelling(home: Home, remote: Remote) -> list[str]:
    """List the workspaces that sync through a remote."""
    return [workspace for workspace in home.workspace_ids() if _carries(remote, workspace)]


def _carries(remote: Remote, workspace: str) -> bool:
    return not remote.workspaces or workspace in remote.workspaces


def _count_purges(home: Home, remote: Remote) -> int:
    """Count the tombstones of the workspaces that sync through a remote."""
    count = 0
    for workspace in list_travelling(home, remote):
        with home.database(workspace).read() as db:
            count += oplog.count_purges(db)
    return count


def count_ahead(home: Home, remote: Remote) -> int:
    """Count the operations that are not sent yet."""
    sent, waiting = home.peers.sent(remote.name), len(home.peers.held_back(remote.name))
    for workspace in list_travelling(home, remote):
        # A store that cannot be used is reported by the exchange.
        with suppress(StoreUnavailable), home.database(workspace).read() as db:
            waiting += oplog.count_after(db, sent.get(workspace, 0), remote.scopes, remote.name)
    return waiting


def _gather(
    home: Home, remote: Remote, sent: Mapping[str, int], most: int, through: Mapping[str, int] | None = None
) -> Iterator[Outgoing]:
    """Yield the operations for a remote after the `sent` numbers, at most `most` at a time, up to `through`."""
    circle = Circle(home.peers)
    items: list[Item] = []
    numbers: list[Numbered] = []
    reached: dict[str, int] = {}
    for workspace in list_travelling(home, remote):
        keep_log(workspace, home.database(workspace), circle)
        number = sent.get(workspace, 0)
        while True:
            with home.database(workspace).read() as db:
                numbered = oplog.after(db, number, most - len(items), remote.scopes, remote.name)
                end = oplog.last_seq(db) if len(numbered) < most - len(items) else None
            number = end if end is not None else numbered[-1][0]
            if through is not None:
                numbered = [pair for pair in numbered if pair[0] <= through.get(workspace, 0)]
            for seq, item in sign_all(workspace, numbered, circle):
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
    """Start the operation log of a workspace, stamped with this device's current identity if it is in a circle."""
    with database.read() as db:
        is_complete = oplog.is_complete(db)
        is_named = circle is None or oplog.is_node(db, circle.identity.node)
    if not is_complete:
        if circle is not None:
            # A store that replaced another one numbers its operations from the start.
            circle.peers.forget_sent("workspace", workspace)
        start_log(database)
    if circle is not None and not is_named:
        with database.write() as db:
            oplog.take_node(db, circle.identity.node, circle.signers)


def list_restored(home: Home, remote: Remote) -> tuple[list[str], dict[str, StoreUnavailable]]:
    """Return the workspaces of a remote whose store was replaced by an earlier state since it was last read.

    Also return its workspaces whose store cannot be used, with the errors.
    """
    circle, remotes = Circle(home.peers), home.peers.remotes()
    sent = {known.name: home.peers.sent(known.name) for known in remotes}
    restored, unusable = [], dict[str, StoreUnavailable]()
    for workspace in home.workspace_ids():
        names = [known.name for known in remotes if _carries(known, workspace)]
        try:
            last_sent = max((sent[name].get(workspace, 0) for name in names), default=0)
            if names and remote.name in _list_due(home, workspace, names, last_sent):
                restored.append(workspace)
            if _carries(remote, workspace):
                keep_log(workspace, home.database(workspace), circle)
        except StoreUnavailable as error:
            if _carries(remote, workspace):
                unusable[workspace] = error
            says = "not exchanged" if workspace in unusable else "not checked"
            home.peers.log(utc_now(), remote.name, f"{says}: {workspace}: {error}")
    return restored, unusable


def _leave_out(home: Home, remote: Remote, unusable: Mapping[str, StoreUnavailable], done: Exchanged) -> Home:
    """Return the data directory without the stores that cannot be used; received operations for them are quarantined.

    Raises the error of the first one if no store is left.
    """
    if unusable and unusable.keys() >= set(list_travelling(home, remote)):
        raise next(iter(unusable.values()))
    done.refused += [f"not exchanged: {workspace}: {error}" for workspace, error in unusable.items()]
    return replace(
        home,
        workspace_ids=lambda: [workspace for workspace in home.workspace_ids() if workspace not in unusable],
        refusal=lambda workspace: str(unusable[workspace]) if workspace in unusable else home.refusal(workspace),
    )


def _list_due(home: Home, workspace: str, remotes: Sequence[str], last_sent: int) -> list[str]:
    """List the remotes that must be read again, because the store was replaced by an earlier state."""
    database = home.database(workspace)
    with database.read() as db:
        due = _read_due(db)
        is_marked = meta.get(db, meta.RESTORED) is not None
        # A copy of the file that a user put back has no mark, or an old one, but a log that ends before what was sent.
        is_earlier = oplog.last_seq(db) < last_sent
    if is_earlier:
        with database.write() as db:
            # If the next steps are interrupted, the next exchange does them again.
            meta.put(db, meta.RESTORED, PUT_BACK)
    elif due is not None or not is_marked:
        return due or []
    # The store gives out the numbers of lost operations again.
    home.peers.forget_sent("workspace", workspace)
    with database.write() as db:
        meta.put(db, meta.RESTORED, json.dumps(remotes))
    return list(remotes)


def _read_due(db: Connection) -> list[str] | None:
    """Return the remotes that must be read again; None if this is not determined since the store was replaced."""
    mark = meta.get(db, meta.RESTORED) or ""
    return [str(name) for name in json.loads(mark)] if mark.startswith("[") else None


def _record_read_again(database: Database, remote: Remote) -> None:
    """Remove a remote from those that must be read again."""
    with database.write() as db:
        due = _read_due(db)
        if due == [remote.name]:
            meta.drop(db, meta.RESTORED)
        elif due is not None:
            meta.put(db, meta.RESTORED, json.dumps([name for name in due if name != remote.name]))


def _is_mine(home: Home, segment: Segment, restored: Collection[str]) -> bool:
    """Return whether this machine has all operations of a segment, except for those that a restore removed."""
    by_workspace: dict[str, list[Operation]] = {}
    for item in segment.items:
        if item.get("workspace") not in restored:
            by_workspace.setdefault(str(item.get("workspace")), []).append(read_item(item, ""))
    here = set(home.workspace_ids())
    for workspace, operations in by_workspace.items():
        if workspace not in here:
            return False
        with home.database(workspace).read() as db:
            if merge.list_new(db, operations):
                return False
    return True
