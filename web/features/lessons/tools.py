"""Tool for lessons."""

from collections.abc import Mapping
from typing import Any

from web.mcp.rendering import render_memory, shorten
from web.mcp.tool import FLAG, SHOWN_EACH, TEXT, BriefPart, Effect, Server, Tool, ToolCall, ToolResult, segment


def lesson_outcome(call: ToolCall) -> ToolResult:
    """Report whether a lesson was followed."""
    path = f"/v1/lessons/surfaces/{segment(call.arguments['surface_id'])}"
    answer = call.server.call("POST", path, call.pick("followed", "note"))
    return ToolResult("recorded", ids=[answer["lesson_id"]])


def shorten_lesson(lesson: Mapping[str, Any]) -> dict[str, Any]:
    """Return a lesson as a memory with a shortened text, which says when it applies."""
    when, rule = lesson["applies_when"], lesson["rule"] or lesson["content"]
    text = f"When {when.removeprefix('when ').removeprefix('When ')}: {rule}" if when else rule
    return shorten({"kind": "lesson", "occurred_at": lesson["created_at"], **lesson, "content": text})


def _read_useful(server: Server, viewer: Mapping[str, str]) -> list[Any]:
    lessons = server.call("GET", "/v1/lessons", query={**viewer, "limit": 2 * SHOWN_EACH})["items"]
    return [shorten_lesson(lesson) for lesson in lessons if lesson["usefulness"] != "dead"][:SHOWN_EACH]


TOOLS = (
    Tool(
        "lesson_outcome",
        "Report whether a lesson shown by prepare (surface ID) was followed. Useless lessons are no longer shown.",
        lesson_outcome,
        {"surface_id": TEXT, "followed": FLAG, "note": TEXT},
        ("surface_id", "followed"),
        effect=Effect.ADDS,
        is_core=True,
        place=45,
    ),
)
BRIEF = (BriefPart("lessons", "Lessons", _read_useful, render_memory, 5),)
