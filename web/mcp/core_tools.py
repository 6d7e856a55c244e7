"""The tools of the core profile. Their descriptions say when to use each of them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pipeline.kernel.errors import NotFound
from pipeline.kernel.records import Kind
from pipeline.kernel.registry import arrange, features, load
from pipeline.text.quoting import quote
from web.mcp.rendering import (
    ShownIds,
    render_memory,
    render_outcome,
    render_record,
    render_section,
    render_session,
    shorten,
)
from web.mcp.tool import (
    FLAG,
    ID,
    NUMBER,
    SESSION,
    SHOWN_EACH,
    TAGS,
    TEXT,
    TEXTS,
    TIME,
    TO,
    BriefPart,
    Effect,
    Server,
    Tool,
    ToolCall,
    ToolResult,
    find_by_key,
    items,
    limit,
    one_of,
    record,
    segment,
    text,
)

RECALLED = 8
NOTHING = "Nothing relevant in this workspace."
NOTHING_RECALLED = f"{NOTHING} With min_relevance 0, recall also returns memories that are probably unrelated."
WHY_NOT_ALL = "The memory is still starting (ask again in a moment), or a team does not answer."
NOT_ALL_SEARCHED = f"Nothing found, but part of the memory was not searched. {WHY_NOT_ALL}"
THERE_MAY_BE_MORE = f"(Part of the memory was not searched; there may be more results. {WHY_NOT_ALL})"
# The fields of a decision and of a lesson.
DETAILS = record(reason=TEXT, alternatives=TEXTS, rule=TEXT, applies_when=TEXT, severity=TEXT)
DECISIONS = {"kind": "decision", "current": "true", "limit": SHOWN_EACH}
# Goals and keyed facts have separate tools.
# Lines about past sessions below the memories.
SESSION_LINES = 2
RECALL_FIELDS = ("query", "k", "kinds", "tags", "since", "until", "as_of", "history", "min_relevance")
STORED = [kind.value for kind in Kind if kind not in (Kind.GOAL, Kind.KEYED_FACT)]


def prepare(call: ToolCall) -> ToolResult:
    """Return the memories that are relevant to a request."""
    body = call.pick("message") | call.own_session() | {"cwd": call.folder, "viewer": call.viewer()}
    try:
        answer = call.server.call("POST", "/v1/prepare", body)
    except NotFound:
        return ToolResult(NOTHING, {"relevant": False})
    parts = ("lessons", "decisions", "facts", "open_goals", "recent_activity", "memories", "team")
    ids = list(dict.fromkeys(memory["id"] for part in parts for memory in answer.get(part, ())))
    for whole in ids:
        call.shown.short(whole)
    text = _say_if_degraded(answer["text"], degraded=answer["degraded"])
    return ToolResult(text, {"relevant": answer["relevant"]}, ids)


def recall(call: ToolCall) -> ToolResult:
    """Find memories."""
    body = {"k": RECALLED} | call.pick(*RECALL_FIELDS)
    try:
        answer = call.server.call("POST", "/v1/recall", body | {"viewer": call.viewer()})
    except NotFound:
        return ToolResult(NOTHING, {"degraded": False})
    hits = [shorten(hit) for hit in answer["results"]]
    none = NOTHING if body.get("min_relevance") == 0 else NOTHING_RECALLED
    lines = [render_memory(hit, call.shown, call.now) for hit in hits]
    lines += [render_session(session, call.now) for session in answer.get("sessions", ())[:SESSION_LINES]]
    return ToolResult(
        _say_if_degraded("\n".join(lines), degraded=answer["degraded"], none=none),
        {"degraded": answer["degraded"]},
        [hit["id"] for hit in hits],
        [hit["score"] for hit in hits],
    )


def get(call: ToolCall) -> ToolResult:
    """Read one memory."""
    call = find_by_key(call)
    of_team = call.pick("from")
    # A team's server also accepts the ends of its ids.
    memory_id = segment(call.shown.whole(str(call.arguments["id"]))) if of_team else call.id()
    memory = call.server.call("GET", f"/v1/memories/{memory_id}", query=of_team or None) | of_team
    return ToolResult(render_record(memory, call.shown, call.now), ids=[memory["id"]])


def remember_batch(call: ToolCall) -> ToolResult:
    """Store memories, attributed to the agent and its session."""
    items = [_memory_item(call, item) | call.origin() for item in call.arguments["items"]]
    answer = call.server.call("POST", "/v1/memories/batch", {"items": items} | call.pick("to"))
    lines = [render_outcome(call.shown, receipt) for receipt in answer["results"]]
    return ToolResult("\n".join(lines), ids=[receipt["id"] for receipt in answer["results"]])


def forget(call: ToolCall) -> ToolResult:
    """Archive or purge a memory."""
    call = find_by_key(call)
    hard = call.arguments.get("hard") is True
    query = {"hard": "true"} if hard else None
    answer = call.server.call("DELETE", f"/v1/memories/{call.id()}", query=query)
    outcome = "deleted permanently; a worker erases every trace" if hard else "archived; it can be restored"
    return ToolResult(outcome, ids=[answer["id"]])


def overview(call: ToolCall) -> ToolResult:
    """Show the contents of the workspace."""
    brief = collect_brief(call.server, call.viewer())
    ids = [record["id"] for part in _list_brief_parts() for record in brief.get(part.name, ())]
    return ToolResult(render_brief(brief, call.shown, call.now), ids=ids)


def collect_brief(server: Server, viewer: Mapping[str, str]) -> dict[str, Any]:
    """Return counts, and the records of each part of the brief."""
    try:
        stats = server.call("GET", "/v1/stats")
    except NotFound:
        return {"workspace": "", "memories": {"active": 0}}
    return {**stats, **{part.name: part.read(server, viewer) for part in _list_brief_parts()}}


def _list_brief_parts() -> list[BriefPart]:
    """List the newest decisions, and the parts that features add."""
    return arrange((_DECISIONS,), (part for module in TOOL_MODULES for part in getattr(module, "BRIEF", ())))


def _read_decisions(server: Server, _viewer: Mapping[str, str]) -> list[Any]:
    return [shorten(decision) for decision in server.call("GET", "/v1/memories", query=DECISIONS)["items"]]


_DECISIONS = BriefPart("decisions", "Decisions", _read_decisions, render_memory)


def render_brief(brief: Mapping[str, Any], shown: ShownIds, now: datetime) -> str:
    """Render a brief."""
    if not brief["memories"]["active"]:
        return "This workspace has no memories yet. Store one with remember_batch."
    kinds = ", ".join(f"{count} {kind}" for kind, count in brief["memories"]["by_kind"].items() if count)
    rows = [f"Workspace {quote(brief['workspace'])}: {brief['memories']['active']} memories ({kinds})"]
    for part in _list_brief_parts():
        rows += render_section(part.title, [part.render(record, shown, now) for record in brief[part.name]])
    return "\n".join(rows)


def _say_if_degraded(text: str, *, degraded: bool, none: str = NOTHING) -> str:
    """Return the text, or a message if it is empty; add a note if part of the memory was not searched."""
    if not text:
        return NOT_ALL_SEARCHED if degraded else none
    return f"{text}\n{THERE_MAY_BE_MORE}" if degraded else text


def _memory_item(call: ToolCall, argument: Any) -> Any:
    if not isinstance(argument, dict):
        return argument
    item = {name: value for name, value in argument.items() if value is not None}
    agent = call.arguments.get("agent") or call.agent
    if agent:
        metadata = item.get("metadata", {})
        item["metadata"] = metadata | {"agent": agent} if isinstance(metadata, dict) else metadata
    if isinstance(item.get("edges"), list):
        item["edges"] = [
            edge | {"to": call.resolve_id(str(edge["to"]), "edges.to")}
            if isinstance(edge, dict) and "to" in edge
            else edge
            for edge in item["edges"]
        ]
    return item


_OWN_TOOLS: tuple[Tool, ...] = (
    Tool(
        "prepare",
        "Call this first with each new request, unless memory came with it. Returns relevant lessons, decisions, "
        "facts and goals; for vague requests, also open work.",
        prepare,
        {"message": text("The request, as the user wrote it"), "session_id": SESSION},
        ("message",),
    ),
    Tool(
        "recall",
        "Search by meaning and words for something specific that prepare did not return. get returns a "
        "long text in full. An empty query lists the most important memories.",
        recall,
        {
            "query": text("A question or key words"),
            "k": limit(100),
            "kinds": {"type": "array", "items": one_of(Kind)},
            "tags": TEXTS,
            "since": TIME,
            "until": TEXT,
            "as_of": TEXT,
            "history": FLAG | {"description": "Include superseded ones"},
            "min_relevance": NUMBER | {"description": "0 includes unrelated ones"},
            "session_id": SESSION,
        },
        ("query",),
    ),
    Tool(
        "get",
        "Read a full memory or fact with its details, edges and history.",
        get,
        {"id": ID, "subject": TEXT, "attribute": TEXT, "from": text("The memory's team, if shown")},
    ),
    Tool(
        "remember_batch",
        "Store what later sessions need: decisions with reasons, lessons, findings. One statement each, clear without "
        "this conversation. No small talk, nothing that the code shows. Changing values: set_fact; tasks: goals.",
        remember_batch,
        {
            "items": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "content": TEXT,
                        "kind": one_of(STORED),
                        "details": DETAILS | {"description": "For a decision or a lesson"},
                        "importance": NUMBER | {"description": "0 to 1; rarely needed"},
                        "tags": TAGS,
                        "edges": items(kind=one_of(["cause", "supports", "contradicts", "supersedes"]), to=ID),
                        "occurred_at": TIME,
                    },
                    "required": ["content"],
                },
            },
            "session_id": SESSION,
            "agent": text("Your name, if not the host's"),
            "to": TO,
        },
        ("items",),
        effect=Effect.ADDS,
        stores=lambda _arguments: True,
    ),
    Tool(
        "forget",
        "Archive a wrong or outdated memory or fact; it can be restored.",
        forget,
        {
            "id": ID,
            "subject": TEXT,
            "attribute": TEXT,
            "hard": FLAG | {"description": "Delete permanently: only if the user asks for it"},
        },
        effect=Effect.FORGETS,
    ),
    Tool(
        "overview",
        "Counts, goals, decisions, lessons and facts of this project. For a request, use prepare.",
        overview,
    ),
)

TOOL_MODULES = load(module for feature in features() for module in feature.tools)
CORE: tuple[Tool, ...] = tuple(
    arrange(_OWN_TOOLS, (tool for module in TOOL_MODULES for tool in module.TOOLS if tool.is_core))
)
