"""Tool for goals."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pipeline.kernel.errors import NotFound
from pipeline.kernel.records import GoalStatus
from pipeline.kernel.times import due_age, format_due
from web.mcp.rendering import ShownIds, speaker_of
from web.mcp.tool import (
    ID,
    NUMBER,
    SESSION,
    SHOWN_EACH,
    TEXT,
    TIME,
    BriefPart,
    Effect,
    Reading,
    Server,
    Tool,
    ToolCall,
    ToolResult,
    one_of,
)


def goals(call: ToolCall) -> ToolResult:
    """List goals, set one, or change one."""
    body = call.pick("title", "status", "progress", "due_at")
    if "id" in call.arguments:
        listed = [call.server.call("PATCH", f"/v1/goals/{call.id()}", body)]
    elif "title" in call.arguments:
        listed = [call.server.call("POST", "/v1/goals", body | call.origin())]
    else:
        listed = _unfinished_goals(call)
    rows = [render_goal(goal, call.shown, call.now) for goal in listed]
    return ToolResult("\n".join(rows) or "There is no such goal.", ids=[goal["id"] for goal in listed])


def _unfinished_goals(call: ToolCall) -> list[dict[str, Any]]:
    statuses = [call.arguments["status"]] if "status" in call.arguments else ["in_progress", "open"]
    try:
        return [
            goal
            for status in statuses
            for goal in call.server.call("GET", "/v1/goals", query=call.viewer() | {"status": status})["items"]
        ]
    except NotFound:
        return []


def render_goal(goal: Mapping[str, Any], shown: ShownIds, now: datetime) -> str:
    """Render a goal in one line."""
    due = f", due {format_due(goal['due_at'])} ({due_age(goal['due_at'], now)})" if goal["due_at"] else ""
    head = f"- [{shown.short(goal['id'])} · {goal['status']} · {goal['progress']:.0%}{due}]"
    return f"{head} {speaker_of(goal).say(goal['title'])}"


def _read_unfinished(server: Server, viewer: Mapping[str, str]) -> list[Any]:
    unfinished = [
        goal
        for status in ("in_progress", "open")
        for goal in server.call("GET", "/v1/goals", query={**viewer, "status": status, "limit": SHOWN_EACH})["items"]
    ]
    return unfinished[:SHOWN_EACH]


TOOLS = (
    Tool(
        "goals",
        "List goals (default: unfinished ones). title creates a goal; id changes a goal.",
        goals,
        {
            "id": ID,
            "title": TEXT,
            "status": one_of(GoalStatus),
            "progress": NUMBER | {"description": "0 to 1"},
            "due_at": TIME,
            "session_id": SESSION,
        },
        effect=Effect.ADDS,
        reading=Reading("List goals (default: unfinished ones).", ("status", "session_id")),
        stores=lambda arguments: bool(arguments.get("title")) and not arguments.get("id"),
        is_core=True,
        place=45,
    ),
)
BRIEF = (BriefPart("goals", "Goals", _read_unfinished, render_goal, 5),)
