"""What the profile `full` adds: correcting, reviewing, exploring and running the memory."""

from typing import Any

from pipeline.errors import FieldError, InvalidField
from pipeline.records import EdgeKind, EntityKind, Kind
from web.mcp.schema import FLAG, ID, INTEGER, NUMBER, OBJECT, OBJECTS, TEXT, items, limit, one_of, text
from web.mcp.text import compact, line, lines, shortened
from web.mcp.tool import Asked, Effect, Told, Tool, segment

MEMORIES = items(id=ID, kind=TEXT, content=TEXT, occurred_at=TEXT, trust=TEXT, cut=FLAG)
PAGE = {"limit": limit(200), "cursor": text("next_cursor of the page before")}
NEXT = {"type": ["string", "null"]}


def edit(asked: Asked) -> Told:
    """Change a memory."""
    body = asked.given("content", "importance", "tags", "metadata", "pinned", "details", "branch")
    memory = asked.server.call("PATCH", f"/v1/memories/{asked.id()}", body)
    return Told(memory, f"changed\n{line(shortened(memory), asked.shown, asked.now)}")


def restore(asked: Asked) -> Told:
    """Bring an archived memory back."""
    memory = asked.server.call("POST", f"/v1/memories/{asked.id()}/restore")
    return Told(memory, f"restored\n{line(shortened(memory), asked.shown, asked.now)}")


def link(asked: Asked) -> Told:
    """Draw an edge, or take one back."""
    path = f"/v1/memories/{asked.id()}/edges"
    edge = {"kind": asked.arguments["kind"], "to": asked.whole(asked.arguments["to"], "to")}
    if asked.arguments.get("remove"):
        told = asked.server.call("DELETE", path, query=edge)
    else:
        told = asked.server.call("POST", path, edge)
    return Told({"edges": told["items"]}, compact(told["items"]))


def timeline(asked: Asked) -> Told:
    """List memories, newest first."""
    query = asked.given("kind", "session_id", "limit", "cursor")
    if asked.arguments.get("archived"):
        query["archived"] = "true"
    found = asked.server.call("GET", "/v1/memories", query={"limit": 20} | query)
    return _page(asked, found, "nothing is stored")


def why(asked: Asked) -> Told:
    """Say why a recall does or does not find a memory."""
    body = {"query": asked.arguments["query"], "id": asked.whole(asked.arguments["id"], "id")}
    told = asked.server.call("POST", "/v1/recall/why", body | {"viewer": asked.viewer()})
    return Told(told, "; ".join(told["reasons"]) or f"rank {told['rank']}")


def duplicates(asked: Asked) -> Told:
    """List the pairs that may say the same, or settle one."""
    if _settles(asked):
        return _settled(asked, "/v1/duplicates")
    found = asked.server.call("GET", "/v1/duplicates", query=asked.viewer() | asked.given("limit", "cursor"))
    pairs = [one | {side: shortened(one[side]) for side in ("older", "newer")} for one in found["items"]]
    rows = [
        f"{one['id']} ({', '.join(one['reasons'])}, cosine {one['cosine']:.2f})\n"
        f"{line(one['older'], asked.shown, asked.now)}\n{line(one['newer'], asked.shown, asked.now)}"
        for one in pairs
    ]
    return Told({"pairs": pairs, "next_cursor": found["next_cursor"]}, "\n".join(rows) or "no pair waits")


def candidates(asked: Asked) -> Told:
    """List the writes that wait for review, or settle one."""
    if _settles(asked):
        return _settled(asked, "/v1/candidates")
    found = asked.server.call("GET", "/v1/candidates", query=asked.viewer() | asked.given("limit", "cursor"))
    return _page(asked, found, "no candidate waits")


def audit(asked: Asked) -> Told:
    """List what was done without being asked, or take one act back."""
    if "undo" in asked.arguments:
        memory = asked.server.call("POST", f"/v1/audit/{segment(asked.arguments['undo'])}/undo")
        return Told({"memory": shortened(memory)}, f"undone\n{line(shortened(memory), asked.shown, asked.now)}")
    found = asked.server.call("GET", "/v1/audit", query=asked.given("limit", "cursor"))
    rows = [
        f"{one['id']} {one['at']} {one['actor']}: {one['action']} {one['memory_id']}"
        + (f" into {one['other_id']}" if one["other_id"] else "")
        + (" (undone)" if one["undone_at"] else "")
        for one in found["items"]
    ]
    return Told({"acts": found["items"], "next_cursor": found["next_cursor"]}, "\n".join(rows) or "nothing was done")


def incognito(asked: Asked) -> Told:
    """Take a session off the record, put it back, or list those that are off."""
    if "session_id" in asked.arguments:
        body = {"session_id": asked.arguments["session_id"], "on": asked.arguments.get("on", True)}
        told = asked.server.call("POST", "/v1/incognito", body)
        return Told({"sessions": [told]}, "off the record" if told["since"] else "on the record again")
    return _listed(asked.server.call("GET", "/v1/incognito"), "sessions")


def jobs(asked: Asked) -> Told:
    """List the jobs of the night, or run one."""
    if "run" in asked.arguments:
        told = asked.server.call("POST", f"/v1/jobs/{segment(asked.arguments['run'])}")
        return Told({"run_id": told["run_id"]}, f"asked for: {told['run_id']}")
    return _listed(asked.server.call("GET", "/v1/jobs"), "jobs")


def stats(asked: Asked) -> Told:
    """Count what the workspace holds and what its digestion waits for."""
    told = asked.server.call("GET", "/v1/stats") | {"queue": asked.server.call("GET", "/v1/queue")}
    return Told(told, compact(told))


def entities(asked: Asked) -> Told:
    """List what memories mention, or read one entity."""
    if "id" in asked.arguments:
        told = asked.server.call("GET", f"/v1/entities/{segment(asked.arguments['id'])}", query=asked.viewer())
        told["memories"] = [shortened(memory) for memory in told.get("memories", ())]
        return Told(
            {"entity": told},
            compact({name: value for name, value in told.items() if name != "memories"})
            + "\n"
            + lines(told["memories"], asked.shown, NO_MENTION, asked.now),
        )
    query = asked.viewer() | asked.given("q", "kind", "limit", "cursor")
    return _listed(asked.server.call("GET", "/v1/entities", query=query), "entities")


def graph(asked: Asked) -> Told:
    """Show what is mentioned together around an entity."""
    told = asked.server.call("GET", "/v1/graph", query=asked.viewer() | asked.given("around", "depth", "limit"))
    return Told(told, compact(told))


def arcs(asked: Asked) -> Told:
    """List narrative threads."""
    query = asked.viewer() | asked.given("status", "limit", "cursor")
    return _listed(asked.server.call("GET", "/v1/arcs", query=query), "arcs")


NO_MENTION = "no memory mentions it"


def _settles(asked: Asked) -> bool:
    given = asked.given("id", "action")
    if len(given) == 1:
        raise InvalidField(FieldError("action" if "id" in given else "id", "is required to settle one"))
    return bool(given)


def _settled(asked: Asked, path: str) -> Told:
    # A pair's id was shown whole; a candidate is shown as other memories are.
    given = asked.arguments["id"]
    whole = asked.whole(given, "id") if path == "/v1/candidates" else given
    memory = asked.server.call("POST", f"{path}/{segment(whole)}", {"action": asked.arguments["action"]})
    return Told({"memory": shortened(memory)}, f"settled\n{line(shortened(memory), asked.shown, asked.now)}")


def _page(asked: Asked, found: Any, none: str) -> Told:
    shown = [shortened(memory) for memory in found["items"]]
    more = f"\nmore with cursor {found['next_cursor']}" if found["next_cursor"] else ""
    return Told(
        {"memories": shown, "next_cursor": found["next_cursor"]}, lines(shown, asked.shown, none, asked.now) + more
    )


def _listed(found: Any, name: str) -> Told:
    return Told({name: found["items"], "next_cursor": found.get("next_cursor")}, compact(found["items"]))


MORE: tuple[Tool, ...] = (
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
