"""What is about the person, where it was kept in a workspace before it had a store of its own: it goes there."""

from pipeline.jobs import snapshot
from pipeline.records import PERSONAL, Filter, Kind
from pipeline.services.two_stores import move_memory
from pipeline.services.workspace import Workspace
from pipeline.store import memories, turns

AT_ONCE = 100


def forget_said(person: Workspace, text: str) -> None:
    """Take what was said about the person, and is purged, out of every workspace that it was said in."""
    for workspace in person.list_siblings():
        with workspace.database.read() as db:
            is_said = turns.holds(db, text)
        if is_said:
            snapshot.forget_said(workspace.database, workspace.paths.snapshots, text)


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
