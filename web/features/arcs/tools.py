"""Tool for arcs."""

from collections.abc import Mapping
from typing import Any

from pipeline.text.quoting import ANYBODY
from web.mcp.tool import Tool, ToolCall, ToolResult, one_of
from web.mcp.tool_lists import PAGE, list_items


def arcs(call: ToolCall) -> ToolResult:
    """List narrative threads."""
    query = call.viewer() | call.pick("status", "limit", "cursor")
    page = call.server.call("GET", "/v1/arcs", query=query)

    def render(arc: Mapping[str, Any]) -> str:
        summary = ANYBODY.say({name: arc[name] for name in ("title", "summary")})
        members = [
            f"  - [{call.shown.short(memory['id'])} · {memory['kind']}] {ANYBODY.say(memory['preview'])}"
            for memory in arc["members"]
        ]
        head = f"- {arc['id']} · {arc['status']} · {arc['size']} memories, {arc['first_at']} to {arc['last_at']}"
        return "\n".join([f"{head}: {summary}", *members])

    return list_items(page, render, "There are no arcs.")


TOOLS = (
    Tool(
        "arcs",
        "List narrative arcs over several sessions.",
        arcs,
        {"status": one_of(("active", "dormant", "closed")), **PAGE},
        place=95,
    ),
)
