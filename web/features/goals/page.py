"""Goals with their status, progress and due dates."""

from datetime import date, datetime
from typing import Annotated, Any

from flask import url_for
from pydantic import Field, StringConstraints
from werkzeug.wrappers import Response

from pipeline.features.goals import usecases as goals
from pipeline.features.memories import usecases as memories
from pipeline.kernel.records import MAX_CONTENT_CHARS, Draft, GoalStatus, Kind, Memory, Outcome
from web.dashboard.view import PAGE_SIZE, Link, Moment, Paged, Section, View, back, next_page, show

section = Section("goals", link=Link("Goals", "goals_list_all", "Knowledge", 48))

# Time of day of a due date that contains only a date.
START_OF_DAY = "T00:00:00.000Z"
NEAR_DAYS = 14

Title = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_CONTENT_CHARS)]


@section.page("/goals", Paged)
def list_all(view: View, *, status: GoalStatus | None = None) -> str:
    """List goals, newest first."""
    page = goals.list_goals(view.workspace, view.workspace.onlooker, status, PAGE_SIZE, view.query.before)
    return show(
        "goals.html",
        view,
        title="Goals",
        goals=page.items,
        dues={goal.seq: due_in_words(goal, view.now) for goal in page.items},
        next_url=next_page(page.next_cursor),
        statuses=list(GoalStatus),
    )


@section.page("/goals/<goal_id>")
def one(view: View, goal_id: str) -> str:
    """Show the edit form and the progress log of a goal."""
    goal = goals.get_goal(view.workspace, goal_id)
    events = goals.list_events(view.workspace, goal)
    return show("goal.html", view, title="Goal", goal=goal, events=events, longest=MAX_CONTENT_CHARS)


@section.action("/goals")
def add(view: View, *, title: Title, due_at: Moment | None = None) -> Response:
    """Add a goal, or reopen a finished goal with the same text."""
    due = {} if due_at is None else {"due_at": due_at}
    draft = Draft(content=title, kind=Kind.GOAL, details={"status": GoalStatus.OPEN, **due})
    setting = goals.set_goal(view.workspace, draft, due.keys())
    if setting.outcome is Outcome.MERGED:
        return back(view, "The goal is open again." if setting.began_anew else "This goal already exists.")
    message = "The goal waits for review." if setting.outcome is Outcome.CANDIDATE else "Goal added."
    return back(view, message, undo=(url_for("dashboard.goals_archive", goal_id=setting.goal.id), {}))


@section.action("/goals/<goal_id>/archive")
def archive(view: View, goal_id: str) -> Response:
    """Archive a goal."""
    memories.archive(view.workspace, goals.get_goal(view.workspace, goal_id).id)
    return back(view, "Goal archived.")


@section.action("/goals/<goal_id>")
def change(
    view: View,
    goal_id: str,
    *,
    title: Title,
    due_at: Moment | None = None,
    progress: Annotated[int, Field(ge=0, le=100)] = 0,
) -> Response:
    """Change a goal's title, progress (a percentage) and due date."""
    goal = goals.get_goal(view.workspace, goal_id)
    before = {"title": goal.content, "progress": str(_percent(goal)), "due_at": goal.details.get("due_at") or ""}
    details: dict[str, Any] = {"due_at": _due(goal, due_at)}
    if progress != _percent(goal):
        details["progress"] = progress / 100
    goals.change_goal(view.workspace, goal.id, None if title == goal.content else title, details)
    undo = (url_for("dashboard.goals_change", goal_id=goal_id), before)
    return back(view, "Goal changed.", to=url_for("dashboard.goals_list_all"), undo=undo)


@section.action("/goals/<goal_id>/status")
def set_status(view: View, goal_id: str, *, status: GoalStatus) -> Response:
    """Change the status of a goal."""
    goal = goals.get_goal(view.workspace, goal_id)
    before = str(goal.details.get("status", GoalStatus.OPEN))
    goals.change_goal(view.workspace, goal_id, details={"status": status})
    undo = (url_for("dashboard.goals_set_status", goal_id=goal_id), {"status": before})
    return back(view, f"The goal is now {status.replace('_', ' ')}.", undo=undo)


def due_in_words(goal: Memory, now: datetime) -> tuple[str, bool]:
    """Return the due date in words ("" without one) and whether an unfinished goal is overdue."""
    due = goal.details.get("due_at")
    if due is None:
        return "", False
    days = (date.fromisoformat(due[:10]) - now.date()).days
    if not goals.is_unfinished(goal):
        return f"was due {due[:10]}", False
    if days < 0:
        return f"overdue by {_days(-days)}, was due {due[:10]}", True
    if days <= NEAR_DAYS:
        return ("due today" if not days else f"due in {_days(days)}"), False
    return f"due {due[:10]}", False


def _days(count: int) -> str:
    return f"{count} day{'' if count == 1 else 's'}"


def _percent(goal: Memory) -> int:
    return round(100 * (goal.details.get("progress") or 0))


def _due(goal: Memory, submitted: str | None) -> str | None:
    """Return the new due date; keep the stored time of day if the form repeats the same day."""
    stored: str | None = goal.details.get("due_at")
    same_day = submitted is not None and stored is not None and submitted == f"{stored[:10]}{START_OF_DAY}"
    return stored if same_day else submitted
