"""What the profile `full` adds: correcting, reviewing, exploring and running the memory."""

from collections.abc import Mapping
from typing import Any

from pipeline.errors import FieldError, InvalidField
from pipeline.records import EdgeKind, EntityKind, Kind
from web.mcp.core_tools import CORE
from web.mcp.rendering import (
    render_json,
    render_memories,
    render_memory,
    shorten,
)
from web.mcp.tool import (
    FLAG,
    ID,
    INTEGER,
    NUMBER,
    OBJECT,
    OBJECTS,
    TEXT,
    Effect,
    Tool,
    ToolCall,
    ToolResult,
    items,
    limit,
    one_of,
    segment,
    text,
)

MEMORIES = items(id=ID, kind=TEXT, content=TEXT, occurred_at=TEXT, trust=TEXT, cut=FLAG)
PAGE = {"limit": limit(200), "cursor": text("next_cursor of the page before")}
NEXT = {"type": ["string", "null"]}


def edit(call: ToolCall) -> ToolResult:
    """Change a memory."""
    body = call.pick("content", "importance", "tags", "metadata", "pinned", "details", "branch")
    memory = call.server.call("PATCH", f"/v1/memories/{call.id()}", body)
    return ToolResult(memory, f"changed\n{render_memory(shorten(memory), call.shown, call.now)}")


def restore(call: ToolCall) -> ToolResult:
    """Bring an archived memory back."""
    memory = call.server.call("POST", f"/v1/memories/{call.id()}/restore")
    return ToolResult(memory, f"restored\n{render_memory(shorten(memory), call.shown, call.now)}")


def link(call: ToolCall) -> ToolResult:
    """Draw an edge, or take one back."""
    path = f"/v1/memories/{call.id()}/edges"
    edge = {"kind": call.arguments["kind"], "to": call.resolve_id(call.arguments["to"], "to")}
    if call.arguments.get("remove"):
        answer = call.server.call("DELETE", path, query=edge)
    else:
        answer = call.server.call("POST", path, edge)
    return ToolResult({"edges": answer["items"]}, render_json(answer["items"]))


def timeline(call: ToolCall) -> ToolResult:
    """List memories, newest first."""
    query = call.pick("kind", "session_id", "limit", "cursor")
    if call.arguments.get("archived"):
        query["archived"] = "true"
    found = call.server.call("GET", "/v1/memories", query={"limit": 20} | query)
    return _render_page(call, found, "nothing is stored")


def why(call: ToolCall) -> ToolResult:
    """Say why a recall does or does not find a memory."""
    body = {"query": call.arguments["query"], "id": call.resolve_id(call.arguments["id"], "id")}
    answer = call.server.call("POST", "/v1/recall/why", body | {"viewer": call.viewer()})
    return ToolResult(answer, "; ".join(answer["reasons"]) or f"rank {answer['rank']}")


def duplicates(call: ToolCall) -> ToolResult:
    """List the pairs that may say the same, or settle one."""
    if _asks_to_settle(call):
        return _settle(call, "/v1/duplicates")
    found = call.server.call("GET", "/v1/duplicates", query=call.viewer() | call.pick("limit", "cursor"))
    pairs = [one | {side: shorten(one[side]) for side in ("older", "newer")} for one in found["items"]]
    rows = [
        f"{one['id']} ({', '.join(one['reasons'])}, cosine {one['cosine']:.2f})\n"
        f"{render_memory(one['older'], call.shown, call.now)}\n{render_memory(one['newer'], call.shown, call.now)}"
        for one in pairs
    ]
    return ToolResult({"pairs": pairs, "next_cursor": found["next_cursor"]}, "\n".join(rows) or "no pair waits")


def candidates(call: ToolCall) -> ToolResult:
    """List the writes that wait for review, or settle one."""
    if _asks_to_settle(call):
        return _settle(call, "/v1/candidates")
    found = call.server.call("GET", "/v1/candidates", query=call.viewer() | call.pick("limit", "cursor"))
    return _render_page(call, found, "no candidate waits")


def audit(call: ToolCall) -> ToolResult:
    """List what was done without being asked, or take one act back."""
    if "undo" in call.arguments:
        memory = call.server.call("POST", f"/v1/audit/{segment(call.arguments['undo'])}/undo")
        return ToolResult(
            {"memory": shorten(memory)}, f"undone\n{render_memory(shorten(memory), call.shown, call.now)}"
        )
    found = call.server.call("GET", "/v1/audit", query=call.pick("limit", "cursor"))
    rows = [
        f"{one['id']} {one['at']} {one['actor']}: {one['action']} {one['memory_id']}"
        + (f" into {one['other_id']}" if one["other_id"] else "")
        + (" (undone)" if one["undone_at"] else "")
        for one in found["items"]
    ]
    return ToolResult(
        {"acts": found["items"], "next_cursor": found["next_cursor"]}, "\n".join(rows) or "nothing was done"
    )


def incognito(call: ToolCall) -> ToolResult:
    """Take a session off the record, put it back, or list those that are off."""
    if "session_id" in call.arguments:
        body = {"session_id": call.arguments["session_id"], "on": call.arguments.get("on", True)}
        answer = call.server.call("POST", "/v1/incognito", body)
        return ToolResult({"sessions": [answer]}, "off the record" if answer["since"] else "on the record again")
    return _list(call.server.call("GET", "/v1/incognito"), "sessions")


def jobs(call: ToolCall) -> ToolResult:
    """List the jobs of the night, or run one."""
    if "run" in call.arguments:
        answer = call.server.call("POST", f"/v1/jobs/{segment(call.arguments['run'])}")
        return ToolResult({"run_id": answer["run_id"]}, f"asked for: {answer['run_id']}")
    return _list(call.server.call("GET", "/v1/jobs"), "jobs")


def stats(call: ToolCall) -> ToolResult:
    """Count what the workspace holds and what its digestion waits for."""
    answer = call.server.call("GET", "/v1/stats") | {"queue": call.server.call("GET", "/v1/queue")}
    return ToolResult(answer, render_json(answer))


def entities(call: ToolCall) -> ToolResult:
    """List what memories mention, or read one entity."""
    if "id" in call.arguments:
        answer = call.server.call("GET", f"/v1/entities/{segment(call.arguments['id'])}", query=call.viewer())
        answer["memories"] = [shorten(memory) for memory in answer.get("memories", ())]
        return ToolResult(
            {"entity": answer},
            render_json({name: value for name, value in answer.items() if name != "memories"})
            + "\n"
            + render_memories(answer["memories"], call.shown, NO_MENTION, call.now),
        )
    query = call.viewer() | call.pick("q", "kind", "limit", "cursor")
    return _list(call.server.call("GET", "/v1/entities", query=query), "entities")


def graph(call: ToolCall) -> ToolResult:
    """Show what is mentioned together around an entity."""
    answer = call.server.call("GET", "/v1/graph", query=call.viewer() | call.pick("around", "depth", "limit"))
    return ToolResult(answer, render_json(answer))


def arcs(call: ToolCall) -> ToolResult:
    """List narrative threads."""
    query = call.viewer() | call.pick("status", "limit", "cursor")
    return _list(call.server.call("GET", "/v1/arcs", query=query), "arcs")


NO_MENTION = "no memory mentions it"


def _asks_to_settle(call: ToolCall) -> bool:
    given = call.pick("id", "action")
    if len(given) == 1:
        raise InvalidField(FieldError("action" if "id" in given else "id", "is required to settle one"))
    return bool(given)


def _settle(call: ToolCall, path: str) -> ToolResult:
    # A pair's id was shown whole; a candidate is shown as other memories are.
    given = call.arguments["id"]
    whole = call.resolve_id(given, "id") if path == "/v1/candidates" else given
    memory = call.server.call("POST", f"{path}/{segment(whole)}", {"action": call.arguments["action"]})
    return ToolResult({"memory": shorten(memory)}, f"settled\n{render_memory(shorten(memory), call.shown, call.now)}")


def _render_page(call: ToolCall, found: Any, none: str) -> ToolResult:
    shown = [shorten(memory) for memory in found["items"]]
    more = f"\nmore with cursor {found['next_cursor']}" if found["next_cursor"] else ""
    return ToolResult(
        {"memories": shown, "next_cursor": found["next_cursor"]},
        render_memories(shown, call.shown, none, call.now) + more,
    )


def _list(found: Any, name: str) -> ToolResult:
    return ToolResult({name: found["items"], "next_cursor": found.get("next_cursor")}, render_json(found["items"]))


ADDED_BY_FULL: tuple[Tool, ...] = (
    Tool(
        "edit",
        "Correct a memory; an old text stays in its history.",
        edit,
        {
            "id": ID,
            "content": TEXT,
            "importance": NUMBER,
            "tags": {"type": "array", "items": TEXT},
            "metadata": OBJECT,
            "pinned": FLAG,
            "details": OBJECT,
            "branch": TEXT,
        },
        ("id",),
        {"id": ID, "content": TEXT},
        Effect.ADDS,
    ),
    Tool("restore", "Bring an archived memory back.", restore, {"id": ID}, ("id",), {"id": ID}, Effect.ADDS),
    Tool(
        "link",
        "Say how a memory bears on another one, or take that back.",
        link,
        {
            "id": ID,
            "kind": one_of(kind for kind in EdgeKind if kind is not EdgeKind.NEXT_IN_SESSION),
            "to": ID,
            "remove": FLAG,
        },
        ("id", "kind", "to"),
        {"edges": items(kind=TEXT, direction=TEXT, id=ID)},
        Effect.ADDS,
    ),
    Tool(
        "timeline",
        "List memories, newest first: of a session, of a kind, or archived ones.",
        timeline,
        {"kind": one_of(Kind), "session_id": TEXT, "archived": FLAG, **PAGE},
        (),
        {"memories": MEMORIES, "next_cursor": NEXT},
    ),
    Tool(
        "why",
        "Why a recall does or does not find a memory.",
        why,
        {"query": TEXT, "id": ID},
        ("query", "id"),
        {"id": ID, "rank": {"type": ["integer", "null"]}, "reasons": {"type": "array", "items": TEXT}},
    ),
    Tool(
        "duplicates",
        "List pairs of memories that may say the same; with id and action merge one into the older, or keep both.",
        duplicates,
        {"id": ID, "action": one_of(("merge", "keep")), **PAGE},
        (),
        {"pairs": items(id=ID, cosine=NUMBER, older=OBJECT, newer=OBJECT), "memory": OBJECT, "next_cursor": NEXT},
        Effect.ADDS,
    ),
    Tool(
        "candidates",
        "List writes that wait for review; with id and action let one in or turn it away. The user decides, not you.",
        candidates,
        {"id": ID, "action": one_of(("accept", "reject")), **PAGE},
        (),
        {"memories": MEMORIES, "memory": OBJECT, "next_cursor": NEXT},
        Effect.ADDS,
    ),
    Tool(
        "audit",
        "List what was merged or archived without being asked; undo takes one act back by its id.",
        audit,
        {"undo": ID, **PAGE},
        (),
        {"acts": items(id=ID, action=TEXT, memory_id=ID), "memory": OBJECT, "next_cursor": NEXT},
        Effect.ADDS,
    ),
    Tool(
        "incognito",
        "Take a session off the record (on: false puts it back), so that nothing of it is stored; alone, list them.",
        incognito,
        {"session_id": TEXT, "on": FLAG},
        (),
        {"sessions": items(session_id=TEXT, since={"type": ["string", "null"]})},
        Effect.ADDS,
    ),
    Tool(
        "jobs",
        "List the maintenance jobs, or run one now by its name.",
        jobs,
        {"run": TEXT},
        (),
        {"jobs": items(name=TEXT, schedule=TEXT), "run_id": ID},
        Effect.ADDS,
    ),
    Tool("stats", "Counts, sizes and what digestion waits for.", stats, gives={"workspace": TEXT, "queue": OBJECT}),
    Tool(
        "entities",
        "What memories mention (people, files, tickets), most often first; with id one of them and its memories.",
        entities,
        {"id": ID, "q": text("Part of a name"), "kind": one_of(EntityKind), **PAGE},
        (),
        {"entities": OBJECTS, "entity": OBJECT, "next_cursor": NEXT},
    ),
    Tool(
        "graph",
        "What is mentioned together around an entity.",
        graph,
        {"around": text("Its id or name"), "depth": INTEGER | {"minimum": 1, "maximum": 2}, "limit": limit(100)},
        ("around",),
        {"nodes": OBJECTS, "edges": OBJECTS},
    ),
    Tool(
        "arcs",
        "Narrative threads: what goes on over several sessions.",
        arcs,
        {"status": one_of(("active", "dormant", "closed")), **PAGE},
        (),
        {"arcs": OBJECTS, "next_cursor": NEXT},
    ),
)

PROFILES: Mapping[str, tuple[Tool, ...]] = {"core": CORE, "full": (*CORE, *ADDED_BY_FULL)}
