"""Goals: what is to be reached, how far it has come, when it is due."""

from datetime import date, datetime
from typing import Annotated, Any

from flask import url_for
from pydantic import BaseModel, Field, StringConstraints
from werkzeug.wrappers import Response

from pipeline.errors import Conflict, NotFound
from pipeline.records import MAX_CONTENT_CHARS, OWNER, Draft, Kind, Memory, Outcome
from pipeline.store import goals, memories
from pipeline.write import revise
from pipeline.write.accept import DIGESTION, commit
from pipeline.write.details import GoalStatus
from pipeline.write.prepare import prepare
from pipeline.write.revise import Revision
from web.dashboard.fields import Moment
from web.dashboard.view import PAGE_SIZE, Paged, Section, View, back, cut, show

section = Section("goals")

# A day that is named without a time of day.
START_OF_DAY = "T00:00:00.000Z"
NEAR_DAYS = 14

Title = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_CONTENT_CHARS)]


class GoalsQuery(Paged):
    """Which goals to list."""

    status: GoalStatus | None = None


class StatusForm(BaseModel):
    """What a goal's status becomes."""

    status: GoalStatus


class GoalForm(BaseModel):
    """A goal; without a due date it has none."""

    title: Title
    due_at: Moment | None = None


class ChangeForm(GoalForm):
    """What a goal becomes; `progress` is in per cent."""

    progress: Annotated[int, Field(ge=0, le=100)] = 0


@section.page("/goals", GoalsQuery)
def list_all(view: View) -> str:
    """List goals, newest first."""
    with view.read() as db:
        found = goals.page(db, OWNER, view.query.status, PAGE_SIZE + 1, view.query.before)
    items, next_url = cut(found, lambda goal: goal.seq)
    dues = {goal.seq: due_in_words(goal, view.now) for goal in items}
    return show("goals.html", view, title="Goals", goals=items, dues=dues, next_url=next_url, statuses=list(GoalStatus))


@section.page("/goals/<goal_id>")
def one(view: View, goal_id: str) -> str:
    """Show what can be changed of a goal."""
    return show("goal.html", view, title="Goal", goal=_goal(view, goal_id), longest=MAX_CONTENT_CHARS)


@section.action("/goals", GoalForm)
def add(view: View) -> Response:
    """Set a goal; one that was finished begins anew."""
    form: GoalForm = view.form
    due = {} if form.due_at is None else {"due_at": form.due_at}
    draft = Draft(content=form.title, kind=Kind.GOAL, details={"status": GoalStatus.OPEN, **due})
    (receipt,) = commit(view.database, [prepare(draft)], view.front.door(view.workspace))
    if receipt.outcome is Outcome.REJECTED:
        return back(view, f"Not kept: {receipt.reason}.")
    _ring(view)
    if receipt.outcome is Outcome.MERGED:
        return _set_again(view, receipt.id, due)
    told = "The goal waits for review." if receipt.outcome is Outcome.CANDIDATE else "The goal is set."
    return back(view, told, undo=(url_for("dashboard.goals_archive", goal_id=receipt.id), {}))


@section.action("/goals/<goal_id>/archive")
def archive(view: View, goal_id: str) -> Response:
    """Archive a goal."""
    revise.archive(view.database, _goal(view, goal_id).id)
    return back(view, "The goal is archived.")


@section.action("/goals/<goal_id>", ChangeForm)
def change(view: View, goal_id: str) -> Response:
    """Change a goal's title, progress and due date."""
    form: ChangeForm = view.form
    goal = _goal(view, goal_id)
    before = {"title": goal.content, "progress": str(_percent(goal)), "due_at": goal.details.get("due_at") or ""}
    details: dict[str, Any] = {"due_at": _due(goal, form.due_at)}
    if form.progress != _percent(goal):
        details["progress"] = form.progress / 100
    title = None if form.title == goal.content else form.title
    revise.edit(view.database, goal.id, Revision(content=title, details=details))
    if title is not None:
        _ring(view)
    undo = (url_for("dashboard.goals_change", goal_id=goal_id), before)
    return back(view, "The goal is changed.", to=url_for("dashboard.goals_list_all"), undo=undo)


@section.action("/goals/<goal_id>/status", StatusForm)
def set_status(view: View, goal_id: str) -> Response:
    """Say what became of a goal."""
    goal = _goal(view, goal_id)
    before = str(goal.details.get("status", GoalStatus.OPEN))
    revise.edit(view.database, goal_id, Revision(details={"status": view.form.status}))
    undo = (url_for("dashboard.goals_set_status", goal_id=goal_id), {"status": before})
    return back(view, f"The goal is {view.form.status.replace('_', ' ')} now.", undo=undo)


def due_in_words(goal: Memory, now: datetime) -> tuple[str, bool]:
    """Return when a goal is due, "" for never, and whether that is past for one that is not finished."""
    due = goal.details.get("due_at")
    if due is None:
        return "", False
    days = (date.fromisoformat(due[:10]) - now.date()).days
    if goal.details.get("status", GoalStatus.OPEN) not in goals.UNFINISHED:
        return f"was due {due[:10]}", False
    if days < 0:
        return f"overdue by {_days(-days)}, was due {due[:10]}", True
    if days <= NEAR_DAYS:
        return ("due today" if not days else f"due in {_days(days)}"), False
    return f"due {due[:10]}", False


def _days(count: int) -> str:
    return f"{count} day{'' if count == 1 else 's'}"


def _goal(view: View, goal_id: str) -> Memory:
    with view.read() as db:
        goal = memories.get(db, goal_id)
    if goal is None or goal.kind is not Kind.GOAL:
        raise NotFound("no such goal")
    return goal


def _set_again(view: View, goal_id: str, due: dict[str, str]) -> Response:
    with view.read() as db:
        known = memories.get(db, goal_id)
    if known is None or known.kind is not Kind.GOAL:
        raise Conflict("Another memory says exactly this.")
    finished = known.details.get("status", GoalStatus.OPEN) not in goals.UNFINISHED
    anew = {"status": GoalStatus.OPEN, "progress": 0.0, "due_at": None} if finished else {}
    if anew or due:
        revise.edit(view.database, goal_id, Revision(details={**anew, **due}))
    return back(view, "This goal begins anew." if finished else "This goal was set already.")


def _percent(goal: Memory) -> int:
    return round(100 * (goal.details.get("progress") or 0))


def _due(goal: Memory, given: str | None) -> str | None:
    """Return the due date that is meant: a form that names the day alone leaves the time of day as it was."""
    known: str | None = goal.details.get("due_at")
    same_day = given is not None and known is not None and given == f"{known[:10]}{START_OF_DAY}"
    return known if same_day else given


def _ring(view: View) -> None:
    for stage in DIGESTION:
        view.front.ring(view.workspace, stage)
