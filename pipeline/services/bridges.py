"""Vocabulary bridges: list the names that recall treats as one thing, remove one, and take a removal back."""

from pipeline.errors import Conflict, NotFound
from pipeline.records import Memory, Page, page_of
from pipeline.store import audit, bridges as store
from pipeline.store.audit import AuditAction, AuditEntry
from pipeline.store.bridges import Bridge
from pipeline.times import utc_now
from pipeline.workspace import Workspace
from pipeline.write.revise import get_existing

NO_SUCH_BRIDGE = "There is no bridge with this ID. List them with `reverie bridges`."
OWNER = "owner"
# Within the details of an audited removal.
BRIDGE = "bridge"
LOOKED_AT = 100


def list_bridges(workspace: Workspace, *, removed: bool, limit: int, before: int | None) -> Page[Bridge]:
    """List the bridges that recall uses, or those that were removed, newest first."""
    with workspace.database.read() as db:
        page = store.page(db, removed=removed, limit=limit + 1, before=before)
    return page_of(page, limit, lambda bridge: bridge.seq)


def remove_bridge(workspace: Workspace, bridge_id: str, by: str | None) -> Bridge:
    """Remove a bridge for good and record who did; raise NotFound or Conflict."""
    with workspace.database.write() as db:
        bridge = store.get(db, bridge_id)
        if bridge is None:
            raise NotFound(NO_SUCH_BRIDGE)
        if bridge.removed_at is not None:
            raise Conflict("This bridge was removed already.")
        now, actor = utc_now(), by or OWNER
        store.remove(db, bridge_id, actor, now)
        audit.add(db, now, actor, AuditAction.UNBRIDGE, bridge.memory_id, detail={BRIDGE: bridge_id})
        return store.get(db, bridge_id) or bridge


def restore_bridge(workspace: Workspace, bridge_id: str) -> Bridge:
    """Use a removed bridge again, and mark its removal as undone; raise NotFound or Conflict."""
    with workspace.database.write() as db:
        bridge = store.get(db, bridge_id)
        if bridge is None:
            raise NotFound(NO_SUCH_BRIDGE)
        if bridge.removed_at is None:
            raise Conflict("This bridge is in use: it was not removed.")
        store.restore(db, bridge_id)
        for entry in audit.of(db, bridge.memory_id, LOOKED_AT):
            if entry.detail.get(BRIDGE) == bridge_id and entry.undone_at is None:
                audit.mark_undone(db, entry.id, utc_now())
        return store.get(db, bridge_id) or bridge


def restore_audited_bridge(workspace: Workspace, entry: AuditEntry) -> Memory:
    """Undo an audited removal; return the memory that the bridge was mined from."""
    restore_bridge(workspace, str(entry.detail.get(BRIDGE)))
    with workspace.database.read() as db:
        return get_existing(db, entry.memory_id)
