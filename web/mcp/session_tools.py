"""Tools of the full profile for sessions and for indexing a project."""

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
    """List sessions, or show one of them."""
    wanted = call.arguments.get("id")
    if wanted is None:
        found = call.server.call("GET", "/v1/sessions", query=call.pick("limit", "cursor"))
        lines = [
            f"- {quote(one['id'])} {one['last_at'][:16]}: {quote(one['name'] or 'no name')} "
            f"({one['turns']} turns, {one['actions']} actions, {one['memories']} memories)"
            for one in found["items"]
        ]
        more = [f"more with cursor {found['next_cursor']}"] if found["next_cursor"] else []
        return ToolResult("\n".join([*lines, *more]) or "There are no sessions.")
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
    """The sources API over a tool's server, for an import."""

    server: Server

    def source_items(self, source: str) -> Iterator[Mapping[str, Any]]:
        """Yield every known item of a source."""
        cursor = None
        while True:
            query = {"limit": PAGE_OF_ITEMS} | ({"cursor": cursor} if cursor else {})
            page = self.server.call("GET", f"/v1/sources/{segment(source)}/items", query=query)
            yield from page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def put_items(self, source: str, items: Sequence[Mapping[str, Any]]) -> Any:
        """Sync the memories of a source with some of its items."""
        return self.server.call("PUT", f"/v1/sources/{segment(source)}/items", {"items": list(items)})

    def forget_items(self, source: str, keys: Sequence[str]) -> Any:
        """Forget items that a source no longer has."""
        return self.server.call("POST", f"/v1/sources/{segment(source)}/forget", {"keys": list(keys)})


def index(call: ToolCall) -> ToolResult:
    """Index the caller's project, or its git history."""
    if not call.folder:
        problem = "needs the folder of the project, which is unknown here; run `reverie index` in that folder"
        raise InvalidField(FieldError("what", problem))
    from web.intake import Intake

    name, folder = str(call.arguments["what"]), Path(call.folder).resolve()
    read = open_reader(name, folder, lambda *_told: None)
    intake = Intake(SourceOfServer(call.server), source_name(name, folder), sweeps=name == "project", dry=False)
    counts = intake.take(read)
    told = ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.memories.items()))
    return ToolResult(f"Indexed {quote(str(folder))}: {counts.items.total()} items; memories: {told or 'none new'}")


SESSION_TOOLS = (
    Tool(
        "sessions",
        "List earlier sessions, newest first; with id show the messages, actions and memories of one.",
        sessions,
        {"id": text("Session ID"), "limit": limit(200), "cursor": text("next_cursor of the previous page")},
    ),
    Tool(
        "index",
        "Index the files of your project, or its git history; update the index after changes.",
        index,
        {"what": one_of(("project", "git"))},
        ("what",),
        effect=Effect.ADDS,
    ),
)
