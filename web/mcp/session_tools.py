"""Tools of the full profile about what happens around memories: sessions, and taking a project in."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.context.quoting import ANYBODY, quote
from pipeline.errors import FieldError, InvalidField
from pipeline.services.ingestion import open_reader, source_name
from web.mcp.rendering import render_memory, shorten
from web.mcp.tool import Effect, Server, Tool, ToolCall, ToolResult, limit, one_of, segment, text

PAGE_OF_ITEMS = 1000
TURN_CHARS = 300


def sessions(call: ToolCall) -> ToolResult:
    """List sessions, or tell what one of them was about."""
    wanted = call.arguments.get("id")
    if wanted is None:
        found = call.server.call("GET", "/v1/sessions", query=call.pick("limit", "cursor"))
        lines = [
            f"- {quote(one['id'])} {one['last_at'][:16]}: {quote(one['name'] or 'no name')} "
            f"({one['turns']} turns, {one['actions']} deeds, {one['memories']} memories)"
            for one in found["items"]
        ]
        more = [f"more with cursor {found['next_cursor']}"] if found["next_cursor"] else []
        return ToolResult("\n".join([*lines, *more]) or "no session is known")
    record = call.server.call("GET", f"/v1/sessions/{segment(str(wanted))}")
    lines = [f"session {quote(record['session']['name'] or record['session']['id'])}"]
    lines += [f"- {one['role']}: {ANYBODY.say(one['content'][:TURN_CHARS])}" for one in reversed(record["said"])]
    lines += [
        f"- {one['type']} {quote(one['target'])}{'' if one['ok'] else ' (failed)'}" for one in reversed(record["did"])
    ]
    lines += [render_memory(shorten(one), call.shown, call.now) for one in record["learnt"]]
    return ToolResult("\n".join(lines), ids=[one["id"] for one in record["learnt"]])


@dataclass(frozen=True, slots=True)
class SourceOfServer:
    """What the intake of a source asks, over a tool's server."""

    server: Server

    def source_items(self, source: str) -> Iterator[Mapping[str, Any]]:
        """Yield every item that a source is known by."""
        cursor = None
        while True:
            query = {"limit": PAGE_OF_ITEMS} | ({"cursor": cursor} if cursor else {})
            page = self.server.call("GET", f"/v1/sources/{segment(source)}/items", query=query)
            yield from page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def put_items(self, source: str, items: Sequence[Mapping[str, Any]]) -> Any:
        """Bring the memories of a source in step with some of its items."""
        return self.server.call("PUT", f"/v1/sources/{segment(source)}/items", {"items": list(items)})

    def forget_items(self, source: str, keys: Sequence[str]) -> Any:
        """Forget items that a source holds no more."""
        return self.server.call("POST", f"/v1/sources/{segment(source)}/forget", {"keys": list(keys)})


def index(call: ToolCall) -> ToolResult:
    """Take in the project that the caller works in, or its history."""
    if not call.folder:
        raise InvalidField(FieldError("what", "no folder is known here; run `reverie index` in the project instead"))
    from web.intake import Intake

    name, folder = str(call.arguments["what"]), Path(call.folder).resolve()
    read = open_reader(name, folder, lambda *_told: None)
    intake = Intake(SourceOfServer(call.server), source_name(name, folder), sweeps=name == "project", dry=False)
    counts = intake.take(read)
    told = ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.memories.items()))
    return ToolResult(f"took in {quote(str(folder))}: {counts.items.total()} items; memories: {told or 'none new'}")


SESSION_TOOLS = (
    Tool(
        "sessions",
        "List earlier sessions by name, the last first; with id what was said, done and learnt in one.",
        sessions,
        {"id": text("A session's id"), "limit": limit(200), "cursor": text("Of the page before")},
    ),
    Tool(
        "index",
        "Take in the files of the project that you work in, or its git history, and bring them in step.",
        index,
        {"what": one_of(("project", "git"))},
        ("what",),
        effect=Effect.ADDS,
    ),
)
