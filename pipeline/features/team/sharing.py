"""Share a private memory with a workspace, and withdraw it."""

from config.paths import is_personal
from pipeline.kernel.errors import Conflict, FieldError, Forbidden, InvalidField
from pipeline.kernel.records import Memory
from pipeline.kernel.records.people import Role, caller_of, owner_of
from pipeline.kernel.store import hook_runs, memories, tables
from pipeline.kernel.workspace import Workspace
from pipeline.write import move as sharing
from pipeline.write.revise import get_existing


def share_memory(workspace: Workspace, target: Workspace, memory_id: str) -> Memory:
    """Share a private memory with all members of a workspace; the personal store keeps its own copy."""
    if is_personal(target.id):
        raise InvalidField(
            FieldError("workspace", "is a personal store, which has only one user; name a shared workspace")
        )
    if target.id == workspace.id:
        return sharing.share(workspace.database, memory_id, workspace.person_id)
    if workspace.id != target.person.id:
        raise Conflict(f"This memory belongs to workspace {workspace.id}. Share it there, or move it first.")
    with workspace.database.read() as db:
        memory = get_existing(db, memory_id)
    if memory.archived_at is not None:
        raise Conflict(f"This memory is archived. Restore it first with `reverie restore {memory_id}`.")
    target.write_policy()
    return sharing.share_copy(target.create(), memory, workspace.person_id)


def withdraw_memory(workspace: Workspace, memory_id: str) -> Memory:
    """Make a shared memory private again, and delete the hook runs that quote it.

    Raises Forbidden unless the caller shared it or owns the workspace.
    """
    with workspace.database.read() as db:
        memory = get_existing(db, memory_id)
    if memory.shared_from is not None and not may_withdraw(workspace, memory):
        raise Forbidden("Only the person who shared a memory, or an owner of the workspace, may withdraw it.")
    is_copy = memory.shared_from is not None and _is_kept_by(workspace, memory)
    withdrawn, gone = sharing.withdraw(workspace.database, memory_id, is_copy=is_copy)
    with workspace.operations.tables.write() as journal:
        tables.erase_outside(journal, [memory_id, *gone], tables=hook_runs.TABLES)
    return withdrawn


def may_withdraw(workspace: Workspace, memory: Memory) -> bool:
    """Return whether the caller shared a memory, or owns its workspace."""
    return workspace.caller.may(workspace.id, Role.OWNER) or sharing.is_sharer(memory, workspace.person_id)


def _is_kept_by(workspace: Workspace, memory: Memory) -> bool:
    """Return whether the personal store of the person who shared a memory also contains it."""
    store = workspace.of(caller_of(owner_of(sharing.scope_before(memory).id))).person
    if store.id == workspace.id or not store.exists:
        return False
    with store.database.read() as db:
        return memories.get(db, memory.id) is not None
