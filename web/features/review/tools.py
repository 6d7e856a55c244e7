"""Tools for the review of candidates and possible duplicates."""

from collections.abc import Mapping
from typing import Any

from pipeline.kernel.errors import FieldError, InvalidField
from web.mcp.rendering import render_memories, shorten
from web.mcp.tool import ID, Effect, Reading, Tool, ToolCall, ToolResult, one_of, segment
from web.mcp.tool_lists import PAGE, list_items, list_page, render_done


def duplicates(call: ToolCall) -> ToolResult:
    """List possible duplicates, or decide about one pair."""
    if _asks_to_settle(call):
        return _settle(call, "/v1/duplicates")
    page = call.server.call("GET", "/v1/duplicates", query=call.viewer() | call.pick("limit", "cursor"))

    def render(pair: Mapping[str, Any]) -> str:
        both = (shorten(pair["older"]), shorten(pair["newer"]))
        head = f"{pair['id']} ({', '.join(pair['reasons'])}, cosine {pair['cosine']:.2f})"
        return f"{head}\n{render_memories(both, call.shown, '', call.now)}"

    return list_items(page, render, "There are no possible duplicates.")


def candidates(call: ToolCall) -> ToolResult:
    """List the candidates that wait for review, or decide about one."""
    if _asks_to_settle(call):
        return _settle(call, "/v1/candidates")
    page = call.server.call("GET", "/v1/candidates", query=call.viewer() | call.pick("limit", "cursor"))
    return list_page(call, page, "There are no candidates.")


def _asks_to_settle(call: ToolCall) -> bool:
    arguments = call.pick("id", "action")
    if len(arguments) == 1:
        raise InvalidField(
            FieldError("action" if "id" in arguments else "id", "is required together with the other one")
        )
    return bool(arguments)


def _settle(call: ToolCall, path: str) -> ToolResult:
    # Ids of pairs are shown in full; ids of candidates are shortened like those of other memories.
    shown_id = call.arguments["id"]
    whole = call.resolve_id(shown_id, "id") if path == "/v1/candidates" else shown_id
    memory = call.server.call("POST", f"{path}/{segment(whole)}", {"action": call.arguments["action"]})
    return render_done(call, "settled", memory)


TOOLS = (
    Tool(
        "duplicates",
        "List possible duplicates; with id and action merge a pair into the memory stated last, or keep both.",
        duplicates,
        {"id": ID, "action": one_of(("merge", "keep")), **PAGE},
        effect=Effect.ADDS,
        reading=Reading("List possible duplicates.", tuple(PAGE)),
        place=55,
    ),
    Tool(
        "candidates",
        "List writes that wait for review; with id and action accept or reject one. The user decides, not you.",
        candidates,
        {"id": ID, "action": one_of(("accept", "reject")), **PAGE},
        effect=Effect.ADDS,
        reading=Reading("List writes that wait for review.", tuple(PAGE)),
        place=55,
    ),
)
