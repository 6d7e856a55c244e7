"""The tools that the profile `full` adds: correct, review, explore and maintain the memory."""

from collections.abc import Callable, Mapping
from typing import Any

from pipeline.context.quoting import ANYBODY, Speaker, flatten, quote
from pipeline.errors import FieldError, InvalidField
from pipeline.records import EdgeKind, EntityKind, Kind
from web.mcp.core_tools import CORE, DETAILS, fact_as_of
from web.mcp.greeting import NO_TOOLS
from web.mcp.offered_tools import MORE_TOOLS
from web.mcp.rendering import render_edges, render_memories, render_memory, shorten
from web.mcp.session_tools import SESSION_TOOLS
from web.mcp.tool import (
    FLAG,
    ID,
    INTEGER,
    NUMBER,
    TAGS,
    TEXT,
    TIME,
    Effect,
    Reading,
    Tool,
    ToolCall,
    ToolResult,
    limit,
    one_of,
    record,
    segment,
    text,
)

PAGE = {"limit": limit(200), "cursor": text("next_cursor of the previous page")}

Row = Callable[[Mapping[str, Any]], str]


def edit(call: ToolCall) -> ToolResult:
    """Change a memory."""
    body = call.pick("content", "importance", "tags", "metadata", "pinned", "details", "branch")
    memory = call.server.call("PATCH", f"/v1/memories/{call.id()}", body)
    return _render_done(call, "changed", memory)


def restore(call: ToolCall) -> ToolResult:
    """Restore an archived memory."""
    memory = call.server.call("POST", f"/v1/memories/{call.id()}/restore")
    return _render_done(call, "restored", memory)


def link(call: ToolCall) -> ToolResult:
    """Create or remove an edge."""
    path = f"/v1/memories/{call.id()}/edges"
    edge = {"kind": call.arguments["kind"], "to": call.resolve_id(call.arguments["to"], "to")}
    if call.arguments.get("remove"):
        answer = call.server.call("DELETE", path, query=edge)
    else:
        answer = call.server.call("POST", path, edge)
    return ToolResult(render_edges(answer["items"], call.shown), ids=[edge["id"] for edge in answer["items"]])


def list_memories(call: ToolCall) -> ToolResult:
    """List memories, newest first."""
    query = call.pick("kind", "session_id", "limit", "cursor")
    if call.arguments.get("archived"):
        query["archived"] = "true"
    page = call.server.call("GET", "/v1/memories", query={"limit": 20} | query)
    return _list_memories(call, page, "There are no memories.")


def why(call: ToolCall) -> ToolResult:
    """Explain why a recall does or does not find a memory."""
    body = {"query": call.arguments["query"], "id": call.resolve_id(call.arguments["id"], "id")}
    answer = call.server.call("POST", "/v1/recall/why", body | {"viewer": call.viewer()})
    # The reasons may contain the name of a session, so they are quoted.
    reason = Speaker("recall").say("; ".join(answer["reasons"])) if answer["reasons"] else f"rank {answer['rank']}"
    return ToolResult(reason, ids=[answer["id"]])


def duplicates(call: ToolCall) -> ToolResult:
    """List possible duplicates, or decide about one pair."""
    if _asks_to_settle(call):
        return _settle(call, "/v1/duplicates")
    page = call.server.call("GET", "/v1/duplicates", query=call.viewer() | call.pick("limit", "cursor"))

    def render(pair: Mapping[str, Any]) -> str:
        both = (shorten(pair["older"]), shorten(pair["newer"]))
        head = f"{pair['id']} ({', '.join(pair['reasons'])}, cosine {pair['cosine']:.2f})"
        return f"{head}\n{render_memories(both, call.shown, '', call.now)}"

    return _list(page, render, "There are no possible duplicates.")


def candidates(call: ToolCall) -> ToolResult:
    """List the candidates that wait for review, or decide about one."""
    if _asks_to_settle(call):
        return _settle(call, "/v1/candidates")
    page = call.server.call("GET", "/v1/candidates", query=call.viewer() | call.pick("limit", "cursor"))
    return _list_memories(call, page, "There are no candidates.")


def audit(call: ToolCall) -> ToolResult:
    """List automatic changes, or undo one."""
    if "undo" in call.arguments:
        memory = call.server.call("POST", f"/v1/audit/{segment(call.arguments['undo'])}/undo")
        return _render_done(call, "undone", memory)
    page = call.server.call("GET", "/v1/audit", query=call.pick("limit", "cursor"))
    return _list(page, _render_act, "There are no automatic changes.")


def incognito(call: ToolCall) -> ToolResult:
    """Turn incognito on or off for a session, or list the incognito sessions."""
    if "session_id" in call.arguments:
        body = {"session_id": call.arguments["session_id"], "on": call.arguments.get("on", True)}
        answer = call.server.call("POST", "/v1/incognito", body)
        return ToolResult("incognito" if answer["since"] else "no longer incognito")
    page = call.server.call("GET", "/v1/incognito")
    return _list(
        page, lambda session: f"- {quote(session['session_id'])}, since {session['since']}", "No session is incognito."
    )


def jobs(call: ToolCall) -> ToolResult:
    """List the maintenance jobs, or run one."""
    if "run" in call.arguments:
        answer = call.server.call("POST", f"/v1/jobs/{segment(call.arguments['run'])}")
        return ToolResult(f"requested run {answer['run_id']}")
    return _list(call.server.call("GET", "/v1/jobs"), _render_job, "There are no jobs.")


def stats(call: ToolCall) -> ToolResult:
    """Count the contents of the workspace and its pending work."""
    answer = call.server.call("GET", "/v1/stats") | {"queue": call.server.call("GET", "/v1/queue")}
    answer["workspace"] = quote(answer["workspace"])
    return ToolResult("\n".join(f"{name}: {flatten(value)}" for name, value in answer.items()))


def entities(call: ToolCall) -> ToolResult:
    """List entities, or read one entity."""
    if "id" in call.arguments:
        answer = call.server.call("GET", f"/v1/entities/{segment(call.arguments['id'])}", query=call.viewer())
        beside = [
            f"together with {_render_entity(entity | {'mentions': entity['memories']})[2:]}"
            for entity in answer["related"]
        ]
        memories = [shorten(memory) for memory in answer["memories"]]
        lines = render_memories(memories, call.shown, "No memory mentions it.", call.now)
        text = "\n".join([_render_entity(answer), *beside, lines])
        return ToolResult(_add_cursor(text, answer), ids=[memory["id"] for memory in memories])
    query = call.viewer() | call.pick("q", "kind", "limit", "cursor")
    return _list(call.server.call("GET", "/v1/entities", query=query), _render_entity, "There are no entities.")


def graph(call: ToolCall) -> ToolResult:
    """Show the entities that share memories with an entity."""
    answer = call.server.call("GET", "/v1/graph", query=call.viewer() | call.pick("around", "depth", "limit"))
    names = {node["id"]: quote(node["name"]) for node in answer["nodes"]}
    beside = [
        f"- {names[edge['from']]} and {names[edge['to']]}: {edge['memories']} memories" for edge in answer["edges"]
    ]
    return ToolResult("\n".join([*map(_render_entity, answer["nodes"]), *beside]), ids=list(names))


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

    return _list(page, render, "There are no arcs.")


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
    return _render_done(call, "settled", memory)


def _render_done(call: ToolCall, done: str, memory: Mapping[str, Any]) -> ToolResult:
    return ToolResult(f"{done}\n{render_memory(shorten(memory), call.shown, call.now)}", ids=[memory["id"]])


def _list_memories(call: ToolCall, page: Mapping[str, Any], none: str) -> ToolResult:
    return _list(page, lambda memory: render_memory(shorten(memory), call.shown, call.now), none)


def _list(page: Mapping[str, Any], render: Row, none: str) -> ToolResult:
    text = "\n".join(map(render, page["items"])) or none
    return ToolResult(_add_cursor(text, page), ids=[item["id"] for item in page["items"] if "id" in item])


def _add_cursor(text: str, page: Mapping[str, Any]) -> str:
    return f"{text}\nmore with cursor {page['next_cursor']}" if page["next_cursor"] else text


def _render_act(act: Mapping[str, Any]) -> str:
    joint = "replaced by" if act["action"] == "close" else "into"
    into = f" {joint} {act['other_id']}" if act["other_id"] else ""
    undone = " (undone)" if act["undone_at"] else ""
    return f"{act['id']} {act['at']} {act['actor']}: {act['action']} {act['memory_id']}{into}{undone}"


def _render_job(job: Mapping[str, Any]) -> str:
    run = job["last_run"]
    last = ""
    if run is not None:
        counts = f" ({flatten(run['counts'])})" if run["counts"] else ""
        # The error may contain text from any source, so it is quoted.
        state = "runs" if run["ok"] is None else "went well" if run["ok"] else f"failed with {quote(run['error'])}"
        last = f", last run {run['started_at']} {state}{counts}"
    return f"- {job['name']} {job['summary']}; {job['schedule']}, next {job['next_run_at']}{last}"


def _render_entity(entity: Mapping[str, Any]) -> str:
    return f"- {entity['id']} · {entity['kind']} · {entity['mentions']} memories mention {quote(entity['name'])}"


ADDED_BY_FULL: tuple[Tool, ...] = (
    Tool(
        "fact_as_of",
        "Read the value of a fact, now or at a time; without attribute all facts of the subject.",
        fact_as_of,
        {"subject": TEXT, "attribute": TEXT, "as_of": TIME, "history": FLAG | {"description": "All values"}},
        ("subject",),
    ),
    Tool(
        "edit",
        "Correct a memory; the old text stays in its history.",
        edit,
        {
            "id": ID,
            "content": TEXT,
            "importance": NUMBER,
            "tags": TAGS,
            "metadata": record(agent=TEXT),
            "pinned": FLAG,
            "details": DETAILS,
            "branch": TEXT,
        },
        ("id",),
        effect=Effect.ADDS,
    ),
    Tool("restore", "Restore an archived memory.", restore, {"id": ID}, ("id",), effect=Effect.ADDS),
    Tool(
        "link",
        "Link a memory to another one, or remove the link.",
        link,
        {
            "id": ID,
            "kind": one_of(kind for kind in EdgeKind if kind is not EdgeKind.NEXT_IN_SESSION),
            "to": ID,
            "remove": FLAG,
        },
        ("id", "kind", "to"),
        effect=Effect.ADDS,
    ),
    Tool(
        "list",
        "Page through memories without a search, newest first: of a kind, of a session, or archived ones.",
        list_memories,
        {"kind": one_of(Kind), "session_id": TEXT, "archived": FLAG, **PAGE},
    ),
    Tool(
        "why",
        "Explain why a recall does or does not find a memory.",
        why,
        {"query": TEXT, "id": ID},
        ("query", "id"),
    ),
    Tool(
        "duplicates",
        "List possible duplicates; with id and action merge a pair into the memory stated last, or keep both.",
        duplicates,
        {"id": ID, "action": one_of(("merge", "keep")), **PAGE},
        effect=Effect.ADDS,
        reading=Reading("List possible duplicates.", tuple(PAGE)),
    ),
    Tool(
        "candidates",
        "List writes that wait for review; with id and action accept or reject one. The user decides, not you.",
        candidates,
        {"id": ID, "action": one_of(("accept", "reject")), **PAGE},
        effect=Effect.ADDS,
        reading=Reading("List writes that wait for review.", tuple(PAGE)),
    ),
    Tool(
        "audit",
        "List automatic merges, archives and ends of facts; undo reverts one by its id.",
        audit,
        {"undo": ID, **PAGE},
        effect=Effect.ADDS,
        reading=Reading("List automatic merges, archives and ends of facts.", tuple(PAGE)),
    ),
    Tool(
        "incognito",
        "Make a session incognito: nothing of it is stored (on: false ends that). Without session_id list them.",
        incognito,
        {"session_id": TEXT, "on": FLAG},
        effect=Effect.ADDS,
        reading=Reading("List the incognito sessions."),
    ),
    Tool(
        "jobs",
        "List the maintenance jobs, or run one now by its name.",
        jobs,
        {"run": TEXT},
        effect=Effect.ADDS,
        reading=Reading("List the maintenance jobs."),
    ),
    Tool("stats", "Counts, sizes and pending work.", stats),
    Tool(
        "entities",
        "List entities (people, files, tickets), most frequent first; with id show one entity and its memories.",
        entities,
        {"id": ID, "q": text("Part of a name"), "kind": one_of(EntityKind), **PAGE},
    ),
    Tool(
        "graph",
        "Show entities that share memories with an entity.",
        graph,
        {"around": text("Its id or name"), "depth": INTEGER | {"minimum": 1, "maximum": 2}, "limit": limit(100)},
        ("around",),
    ),
    Tool(
        "arcs",
        "List narrative arcs over several sessions.",
        arcs,
        {"status": one_of(("active", "dormant", "closed")), **PAGE},
    ),
)

# The tools that `more_tools` reveals in a session with the core profile.
REVEALED: tuple[Tool, ...] = (*ADDED_BY_FULL, *SESSION_TOOLS)
PROFILES: Mapping[str, tuple[Tool, ...]] = {
    "core": (*CORE, MORE_TOOLS),
    "full": (*CORE, *REVEALED),
    NO_TOOLS: (),
}
