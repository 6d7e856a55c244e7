"""Finish interrupted moves, and move personal memories to the personal store."""

from pipeline.kernel.records import PERSONAL, Filter, Kind, Scope
from pipeline.kernel.store import facts, memories
from pipeline.kernel.workspace import Workspace
from pipeline.text.personal_facts import USER
from pipeline.write.move import finish_moves, move_memory

AT_ONCE = 100


def settle_stores(workspace: Workspace) -> None:
    """Finish interrupted moves, then move memories about the person to the personal store."""
    finish_moves(workspace)
    gather_personal(workspace)


def gather_personal(workspace: Workspace) -> int:
    """Move a workspace's memories about the person to the personal store; return their number."""
    if not workspace.personal_memory_enabled or workspace.access.is_silent:
        return 0
    with workspace.database.read() as db:
        kinds = tuple(kind for kind in Kind if kind not in (Kind.GOAL, Kind.KEYED_FACT))
        personal = memories.page(db, Filter(scope=PERSONAL, kinds=kinds), AT_ONCE, None)
        about_user = [
            fact for scope in (Scope(), PERSONAL) for fact in facts.page(db, scope, USER, None, AT_ONCE, None)
        ]
    # On a server with several people, the user is the author.
    personal += [fact for fact in about_user if fact.author is None]
    for memory in personal:
        move_memory(workspace, workspace.person, memory.id)
    return len(personal)
