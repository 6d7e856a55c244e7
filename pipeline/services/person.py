"""What is about the person, where it was kept in a workspace before it had a store of its own: it goes there."""

from pipeline.records import PERSONAL, Filter, Kind
from pipeline.services.two_stores import move_memory
from pipeline.store import memories
from pipeline.workspace import Workspace

AT_ONCE = 100


def gather_personal(workspace: Workspace) -> int:
    """Move what a workspace keeps about the person to their own store; return how many memories."""
    if not workspace.tells_of_person or workspace.settings.incognito or workspace.settings.read_only:
        return 0
    with workspace.database.read() as db:
        kinds = tuple(kind for kind in Kind if kind not in (Kind.GOAL, Kind.KEYED_FACT))
        found = memories.page(db, Filter(scope=PERSONAL, kinds=kinds), AT_ONCE, None)
    for memory in found:
        move_memory(workspace, workspace.person, memory.id)
    return len(found)
