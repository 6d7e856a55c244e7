"""Goals with their progress, status and due date."""

from collections.abc import Mapping, Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from pipeline.kernel.enums import UNFINISHED
from pipeline.kernel.errors import Conflict, NotFound
from pipeline.kernel.records import Draft, EdgeKind, GoalStatus, Kind, Memory, Outcome, Page, Revision, Viewer, page_of
from pipeline.kernel.store import edges, goals, history, memories
from pipeline.kernel.store.visibility import is_open_to
from pipeline.kernel.times import utc_now
from pipeline.kernel.workspace import Workspace
from pipeline.write import revise
from pipeline.write.accept import INCOGNITO, commit
from pipeline.write.prepare import prepare

# Details of a finished goal that is set again.
BEGINNING: Mapping[str, Any] = {"status": GoalStatus.OPEN, "progress": 0.0, "due_at": None}


@dataclass(frozen=True, slots=True)
class GoalSetting:
    """A goal after it was set; `began_anew` if it was finished before."""

    goal: Memory
    outcome: Outcome
    began_anew: bool = False


# The history event for progress of a goal, and the details that it records.
ADVANCED = "advanced"
STEPS = ("status", "progress")


@dataclass(frozen=True, slots=True)
class GoalEvent:
    """An action or note that advanced a goal, its time, and the memory that describes it, if any."""

    at: str
    text: str
    memory_id: str | None = None


def set_goal(workspace: Workspace, draft: Draft, named: AbstractSet[str] = frozenset()) -> GoalSetting:
    """Set a goal; a known goal takes over the `named` details of the draft.

    A finished goal is reopened. Raises Conflict if the goal is rejected or another memory has the same text.
    """
    # Prepare first: an invalid draft must not create a workspace.
    prepared, policy = prepare(draft), workspace.write_policy()
    database = workspace.create()
    (receipt,) = commit(database, [prepared], policy)
    with database.read() as db:
        goal = memories.get(db, receipt.id)
    if goal is None:
        if receipt.reason == INCOGNITO:
            raise Conflict("The goal was not stored: the user wants nothing of this session or message to be stored.")
        raise Conflict(f"The goal was not stored: {receipt.reason}")
    if goal.kind is not Kind.GOAL:
        raise Conflict(f"a {goal.kind} of the same scope says exactly this")
    if receipt.outcome is not Outcome.MERGED:
        return GoalSetting(goal, receipt.outcome)
    finished = not is_unfinished(goal)
    details = {name: value for name, value in draft.details.items() if name in named}
    if finished:
        details = {**BEGINNING, **draft.details}
    if details:
        goal = revise.edit(database, goal.id, Revision(details=details))
    return GoalSetting(goal, receipt.outcome, began_anew=finished)


def get_goal(workspace: Workspace, goal_id: str) -> Memory:
    """Return a goal; raise NotFound if there is no such goal."""
    with workspace.database.read() as db:
        goal = memories.get(db, goal_id)
    if goal is None or goal.kind is not Kind.GOAL:
        raise NotFound("no such goal")
    return goal


def list_goals(
    workspace: Workspace, viewer: Viewer, status: GoalStatus | None, limit: int, before: int | None
) -> Page[Memory]:
    """List goals, newest first."""
    with workspace.database.read() as db:
        page = goals.page(db, viewer, status, limit + 1, before)
    return page_of(page, limit, lambda goal: goal.seq)


def change_goal(
    workspace: Workspace, goal_id: str, title: str | None = None, details: Mapping[str, Any] | None = None
) -> Memory:
    """Change a goal's title and some of its details; a due date of None removes it."""
    goal = get_goal(workspace, goal_id)
    changed = revise.edit(workspace.database, goal.id, Revision(content=title, details=details or None))
    steps = {name: [goal.details.get(name), changed.details.get(name)] for name in STEPS}
    moved = {name: step for name, step in steps.items() if step[0] != step[1]}
    if moved:
        with workspace.database.write() as db:
            history.add(db, changed.seq, utc_now(), ADVANCED, None, moved)
    return changed


def list_events(workspace: Workspace, goal: Memory) -> list[GoalEvent]:
    """List the actions for a goal and its reported progress."""
    with workspace.database.read() as db:
        steps = [entry for entry in history.of(db, goal.seq) if entry.event == ADVANCED]
        links = [edge for edge in edges.of(db, goal.seq) if edge.kind is EdgeKind.SUPPORTS and not edge.outgoing]
        open_links = [edge for edge in links if is_open_to(edge.other_scope, workspace.person_id)]
        done = memories.by_ids(db, {edge.other_id for edge in open_links}).values()
    events = [
        GoalEvent(entry.at, ", ".join(f"{name} {before} → {after}" for name, (before, after) in entry.detail.items()))
        for entry in steps
    ]
    events += [GoalEvent(memory.occurred_at, memory.content, memory.id) for memory in done]
    return sorted(events, key=lambda event: event.at)


def is_unfinished(goal: Memory) -> bool:
    """Return whether a goal still needs work."""
    return goal.details.get("status", GoalStatus.OPEN) in UNFINISHED
