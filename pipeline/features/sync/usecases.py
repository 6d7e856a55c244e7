"""Sync memories between several machines through remotes, without an account."""

import hmac
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from typing import Any

from config.paths import PERSONAL_WORKSPACE, is_personal, is_workspace_id
from pipeline.features.sync import exchange as exchanging, merge
from pipeline.features.sync.circle import Card, Circle
from pipeline.features.sync.exchange import Exchanged, Home
from pipeline.features.sync.remotes.objects import make_folder
from pipeline.features.sync.remotes.remote import check_url
from pipeline.features.sync.signed import TRAVELLING_SCOPES, cards_of, sign_all, with_cards
from pipeline.kernel.errors import (
    Conflict,
    FieldError,
    InvalidField,
    NotFound,
    PeerRefused,
    RemoteUnreachable,
    ReverieError,
    StoreUnavailable,
)
from pipeline.kernel.extras import require_extra
from pipeline.kernel.records import Memory, Revision, ScopeKind
from pipeline.kernel.store import oplog, replicated_records
from pipeline.kernel.store.objects import FOLDER
from pipeline.kernel.store.peers import Device, Event, PutAside, Remote
from pipeline.kernel.store.stores import Stores
from pipeline.kernel.times import utc_now
from pipeline.kernel.workspace import WorkspaceSettings
from pipeline.write import revise

# Memories of an agent are not synced unless a person selects their scope.
USUAL_SCOPES = (ScopeKind.WORKSPACE, ScopeKind.USER)
# Maximum seconds to wait for another exchange to finish.
PATIENCE_S = 30.0
MOST_CONFLICTS = 200


@dataclass(frozen=True, slots=True)
class RemoteStatus(Remote):
    """A remote, and the number of operations that are not sent yet."""

    ahead: int = 0


@dataclass(frozen=True, slots=True)
class FieldConflict:
    """A field of a memory that two machines changed concurrently: the current value and the lost one."""

    workspace: str
    memory_id: str
    field: str
    won: Any
    lost: Any
    by: str
    operation: str


class SyncService:
    """Sync a data directory with other machines."""

    def __init__(self, stores: Stores, settings: WorkspaceSettings) -> None:
        self._databases = stores.databases
        self._people = stores.people
        self._settings = settings
        self.peers = stores.peers
        self._home = Home(
            self.peers,
            self._list_travelling,
            lambda workspace: stores.databases.get(workspace, create=True),
            self._refusal,
        )

    def _refusal(self, workspace: str) -> str | None:
        access = self._settings.access(workspace)
        if access.is_read_only:
            return f"the workspace {workspace} is read only here (setting read_only)"
        return f"nothing is stored in {workspace} here (setting incognito)" if access.is_incognito else None

    # Remotes

    def add(
        self, name: str, url: str, workspaces: Sequence[str] = (), scopes: Sequence[str] = (), *, sealed: bool = True
    ) -> RemoteStatus:
        """Add a remote; raise InvalidField for an unusable remote, Conflict for a name that is in use."""
        if not is_workspace_id(name):
            raise InvalidField(FieldError("name", "must be made of a-z, 0-9, '.', '_' and '-'"))
        address = check_url(url)
        unknown = set(scopes) - set(TRAVELLING_SCOPES)
        if unknown:
            raise InvalidField(FieldError("scope", f"{min(unknown)} is never synced"))
        if any(remote.name == name for remote in self._remotes()):
            raise Conflict(f"There is already a remote {name}. Remove it first with `reverie sync remove {name}`.")
        if address.startswith(FOLDER):
            make_folder(address)
        remote = Remote(
            name, address, tuple(workspaces), tuple(scopes) or tuple(USUAL_SCOPES), sealed, added_at=utc_now()
        )
        circle = Circle(self.peers)
        for workspace in exchanging.list_travelling(self._home, remote):
            exchanging.keep_log(workspace, self._databases.get(workspace), circle)
        self.peers.put_remote(remote)
        self.peers.log(utc_now(), name, f"added: {address}")
        return self._status(remote)

    def remove(self, name: str) -> None:
        """Stop syncing with a remote, and leave its data there. Raises NotFound for an unknown remote."""
        self._find(name)
        with self.peers.alone(PATIENCE_S):
            self.peers.drop_remote(name)
        self.peers.log(utc_now(), name, "removed")

    def _remotes(self) -> list[Remote]:
        return self.peers.remotes() if self.peers.exists else []

    def _find(self, name: str) -> Remote:
        remotes = [remote for remote in self._remotes() if remote.name == name]
        if not remotes:
            raise NotFound(f"there is no remote {name}; `reverie sync status` lists them")
        return remotes[0]

    def now(self, names: Sequence[str] = ()) -> Mapping[str, Exchanged | ReverieError]:
        """Exchange with all remotes or the named ones; the result for a failed remote is its error."""
        for name in names:
            self._find(name)
        remotes = [remote for remote in self._remotes() if not names or remote.name in names]
        results: dict[str, Exchanged | ReverieError] = {}
        with self.peers.alone(PATIENCE_S) if remotes else nullcontext():
            for remote in remotes:
                try:
                    results[remote.name] = exchanging.exchange(self._home, remote)
                except (RemoteUnreachable, PeerRefused, StoreUnavailable) as error:
                    results[remote.name] = error
        return results

    def status(self) -> list[RemoteStatus]:
        """Return the state of each remote at its last exchange, and the number of unsent operations."""
        return [self._status(remote) for remote in self._remotes()]

    def look(self) -> list[RemoteStatus]:
        """Return the current state of each remote, or why it cannot be reached."""
        return [self._look(status) for status in self.status()]

    def _look(self, status: RemoteStatus) -> RemoteStatus:
        try:
            unread = exchanging.open_remote(self._home, status).count_unread()
        except (RemoteUnreachable, PeerRefused) as error:
            return replace(status, error=str(error))
        return replace(status, behind=status.behind + unread)

    def _status(self, remote: Remote) -> RemoteStatus:
        return RemoteStatus(**asdict(remote), ahead=exchanging.count_ahead(self._home, remote))

    def events(self, limit: int) -> list[Event]:
        """List the sync events, the latest first."""
        return self.peers.events(limit) if self.peers.exists else []

    def put_aside(self) -> list[PutAside]:
        """List the quarantined operations with the reasons."""
        return self.peers.list_quarantined() if self.peers.exists else []

    def repair(self, names: Sequence[str] = ()) -> Mapping[str, int]:
        """Read remotes again from the start, and update every row that differs from the log.

        Files of this device that are damaged or missing on a remote are written again. Return the number of missing
        operations by remote, of damaged files by remote if there are any, and of wrong rows by workspace.
        """
        counts: dict[str, int] = {}
        with self.peers.alone(PATIENCE_S):
            for remote in self._remotes():
                if not names or remote.name in names:
                    self.peers.forget_progress(remote.name)
                    damaged = exchanging.mend(self._home, remote)
                    if damaged:
                        counts[f"files on {remote.name}"] = damaged
                    counts[f"remote {remote.name}"] = exchanging.exchange(self._home, remote).applied
            for workspace in self._databases.ids():
                counts[f"workspace {workspace}"] = merge.repair(self._databases.get(workspace))
        return counts

    # Devices

    def invite(self) -> str:
        """Return the pairing code for a new device."""
        require_extra("sync")
        return Circle(self.peers).code

    def join(self, code: str) -> None:
        """Join the circle of a code; raise InvalidField for an invalid code, Conflict if already in another circle."""
        require_extra("sync")
        Circle(self.peers).join(code)

    def devices(self) -> list[tuple[Device, bool]]:
        """List (device, whether it is this one), including revoked devices."""
        if not self.peers.exists:
            return []
        circle = Circle(self.peers)
        return [(device, device.node == circle.identity.node) for device in circle.devices.values()]

    def revoke(self, name: str) -> Device:
        """Revoke a device: it cannot read operations from now on."""
        with self.peers.alone(PATIENCE_S):
            circle = Circle(self.peers)
            device = circle.find(name)
            circle.revoke(device.node)
        self.peers.log(utc_now(), "", f"revoked {device.name}")
        return device

    # Requests from another Reverie

    def is_member(self, bearer: str, *, of_old: bool) -> bool:
        """Return whether a token belongs to this circle of devices; `of_old` accepts tokens of earlier keys."""
        if not self.peers.exists:
            return False
        tokens = Circle(self.peers).tokens
        return any(hmac.compare_digest(bearer.encode(), token.encode()) for token in tokens[: None if of_old else 1])

    def meet(self, cards: Sequence[Card], notices: Sequence[str]) -> tuple[list[Card], list[str], list[str]]:
        """Accept the cards and notices of another device; return those and the workspaces of this one."""
        Circle(self.peers).heed(notices)
        Circle(self.peers).meet(cards)
        return Circle(self.peers).cards(), self.peers.notices(), self._list_travelling()

    def _list_travelling(self) -> list[str]:
        """List the synced workspaces: all except the personal stores of other people."""
        has_people = self._people.exists
        return [
            workspace_id
            for workspace_id in self._databases.ids()
            if not has_people or workspace_id == PERSONAL_WORKSPACE or not is_personal(workspace_id)
        ]

    def list_changes(self, workspace: str, after: int, limit: int) -> list[dict[str, Any]]:
        """List the synced operations of a workspace after a number, each signed by its author."""
        circle = Circle(self.peers)
        database = self._databases.get(workspace)
        exchanging.keep_log(workspace, database, circle)
        with database.read() as db:
            numbered = oplog.after(db, after, limit, USUAL_SCOPES)
        items = [{**item, "cursor": str(number)} for number, item in sign_all(workspace, numbered, circle)]
        return with_cards(items, circle)

    def take_in(self, workspace: str, items: Sequence[Any]) -> merge.Merged:
        """Merge operations that another device sends."""
        Circle(self.peers).meet(cards_of(items))
        return exchanging.take_in(self._home, workspace, items, "")

    # Conflicts

    def conflicts(self, workspace: str) -> list[FieldConflict]:
        """List the fields that two machines changed concurrently, the last changed first."""
        if not self.peers.exists:
            return []
        database, circle = self._databases.get(workspace), Circle(self.peers)
        conflicts = []
        with database.read() as db:
            for key, fold in oplog.list_forked(db, MOST_CONFLICTS):
                for name, operation, stamp, value in merge.list_overruled(fold):
                    by = circle.name_of(stamp[22:])
                    won = fold.fields.get(name)
                    conflicts.append(FieldConflict(workspace, key.memory_id, name, won, value, by, operation))
        return conflicts

    def restore_lost(self, workspace: str, memory_id: str, field: str, operation: str) -> Memory:
        """Restore the lost value of a field as a new edit."""
        conflicts = [
            conflict
            for conflict in self.conflicts(workspace)
            if (conflict.memory_id, conflict.field, conflict.operation) == (memory_id, field, operation)
        ]
        if not conflicts:
            raise NotFound("there is no such conflict; `reverie sync conflicts` lists them")
        lost = conflicts[0].lost
        if field.startswith(replicated_records.DETAIL):
            revision = Revision(details={field.removeprefix(replicated_records.DETAIL): lost})
        elif field in ("content", "metadata", "importance", "pinned", "branch", "expires_at"):
            revision = replace(Revision(), **{field: lost})
        else:
            raise Conflict(f"The field {field} of a memory cannot be edited.")
        return revise.edit(self._databases.get(workspace), memory_id, revision)
