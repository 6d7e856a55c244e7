"""The brief of a project: what a newcomer should know before the first request."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pipeline.errors import NotFound
from pipeline.times import utc_now
from web.mcp.ids import ShownIds
from web.mcp.text import fact_line, goal_line, line, section, shortened
from web.mcp.tool import Server

SHOWN_EACH = 8


def brief(server: Server, viewer: Mapping[str, str]) -> dict[str, Any]:
    """Gather counts, unfinished goals, the newest decisions, lessons that help, and the facts that hold."""
    try:
        stats = server.call("GET", "/v1/stats")
    except NotFound:
        return {"workspace": "", "memories": {"active": 0}, "goals": [], "decisions": [], "lessons": [], "facts": []}
    unfinished = [
        goal
        for status in ("in_progress", "open")
        for goal in server.call("GET", "/v1/goals", query={**viewer, "status": status, "limit": SHOWN_EACH})["items"]
    ]
    decisions = server.call("GET", "/v1/memories", query={"kind": "decision", "limit": SHOWN_EACH})["items"]
    lessons = server.call("GET", "/v1/lessons", query={**viewer, "limit": 2 * SHOWN_EACH})["items"]
    facts = server.call("GET", "/v1/facts", query={"as_of": utc_now(), "limit": SHOWN_EACH})["items"]
    return {
        "workspace": stats["workspace"],
        "memories": stats["memories"],
        "goals": unfinished[:SHOWN_EACH],
        "decisions": [shortened(one) for one in decisions],
        "lessons": [_lesson(one) for one in lessons if one["usefulness"] != "dead"][:SHOWN_EACH],
        "facts": facts,
    }


def brief_text(found: Mapping[str, Any], shown: ShownIds, now: datetime) -> str:
    """Render a brief."""
    if not found["memories"]["active"]:
        return "nothing is stored in this workspace yet"
    kinds = ", ".join(f"{count} {kind}" for kind, count in found["memories"]["by_kind"].items() if count)
    rows = [f"Workspace {found['workspace']}: {found['memories']['active']} memories ({kinds})"]
    rows += section("Goals", [goal_line(goal, shown, now) for goal in found["goals"]])
    rows += section("Lessons", [line(one, shown, now) for one in found["lessons"]])
    rows += section("Decisions", [line(one, shown, now) for one in found["decisions"]])
    rows += section("Facts", [fact_line(fact) for fact in found["facts"]])
    return "\n".join(rows)


def _lesson(lesson: Mapping[str, Any]) -> dict[str, Any]:
    when, rule = lesson["applies_when"], lesson["rule"] or lesson["content"]
    text = f"When {when.removeprefix('when ').removeprefix('When ')}: {rule}" if when else rule
    return shortened({"kind": "lesson", "occurred_at": lesson["created_at"]} | dict(lesson) | {"content": text})
