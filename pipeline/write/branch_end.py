"""Move the memories of a merged branch to the repository, archive those of a deleted one, and follow a new name."""

from sqlite3 import Connection

from pipeline.records import Memory, Scope
from pipeline.store import audit, branches, duplicates, facts, memories
from pipeline.store.audit import AuditAction
from pipeline.write.reindex import reindex
from pipeline.write.revise import archive_memory
from pipeline.write.share import open_to_workspace, rescope

# The actor in the audit trail.
ACTOR = "branches"


def promote(db: Connection, memory: Memory, at: str) -> bool:
    """Make a memory of a merged branch one of the repository within a transaction; a memory with its text absorbs it.

    Return False for a keyed fact of which the repository has a value.
    """
    same = memories.find_active_text(db, Scope(), memory.content_hash) if memory.key is None else None
    if same is not None:
        duplicates.merge(db, same, memory, ACTOR, at, {})
        reindex(db, same)
        return True
    if memory.key is not None and facts.history(db, memory.key, Scope()):
        return False
    open_to_workspace(db, memory, memory.scope, ACTOR, at)
    return True


def archive_unmerged(db: Connection, memory: Memory, at: str) -> None:
    """Archive a memory of a branch that was deleted without a merge, within a transaction."""
    archive_memory(db, memory, at)
    audit.add(db, at, ACTOR, AuditAction.ARCHIVE, memory.id, detail={"branch": memory.branch})


def follow_rename(db: Connection, memory: Memory, new_name: str, at: str) -> None:
    """Move a memory to the new name of its branch within a transaction; a memory with its text absorbs it."""
    scope = branches.scope_of_branch(new_name)
    same = memories.find_active_text(db, scope, memory.content_hash) if memory.key is None else None
    if same is not None:
        duplicates.merge(db, same, memory, ACTOR, at, {})
        reindex(db, same)
        return
    rescope(db, memory, scope, None, at)
