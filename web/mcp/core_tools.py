"""The tools of the core profile. Their descriptions say when to use each of them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pipeline.context.quoting import flatten, quote
from pipeline.errors import NotFound
from pipeline.records import GoalStatus, Kind
from pipeline.times import utc_now
from web.mcp.rendering import (
    ShownIds,
    explain_reason,
    render_fact,
    render_goal,
    render_memory,
    render_outcome,
    render_record,
    render_section,
    render_session,
    shorten,
    shorten_lesson,
)
from web.mcp.tool import (
    FLAG,
    ID,
    NUMBER,
    SESSION,
    TAGS,
    TEXT,
    TEXTS,
    TIME,
    Effect,
    Reading,
    Server,
    Tool,
    ToolCall,
    ToolResult,
    find_by_key,
    items,
    limit,
    one_of,
    path_name,
    record,
    segment,
    text,
)

RECALLED = 8
SHOWN_EACH = 8
NOTHING = "Nothing relevant in this workspace."
NOTHING_RECALLED = f"{NOTHING} With min_relevance 0, recall also returns memories that are probably unrelated."
WHY_NOT_ALL = "The memory is still starting (ask again in a moment), or a team does not answer."
NOT_ALL_SEARCHED = f"Nothing found, but part of the memory was not searched. {WHY_NOT_ALL}"
THERE_MAY_BE_MORE = f"(Part of the memory was not searched; there may be more results. {WHY_NOT_ALL})"
# The fields of a decision and of a lesson.
DETAILS = record(reason=TEXT, alternatives=TEXTS, rule=TEXT, applies_when=TEXT, severity=TEXT)
TO = text("A team to store it for, if the user says so")
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


def set_fact(call: ToolCall) -> ToolResult:
    """Set the value of a fact, or end the current value."""
    path = f"/v1/facts/{path_name(call, 'subject')}/{path_name(call, 'attribute')}"
    # With a schema of type text, a model can only write null as a text.
    if call.arguments["value"] in (None, "null"):
        began = call.pick("valid_from")
        query = {"valid_to": began["valid_from"]} if began else None
        ended = call.server.call("DELETE", path, query=query)
        return ToolResult(f"ended\n{render_fact(ended)}", ids=[ended["id"]])
    body = call.pick("value", "valid_from", "to") | call.origin()
    answer = call.server.call("PUT", path, body)
    # The value comes from the caller, but the names may be those of an existing fact.
    line = f"{answer['outcome']}: {_quote_key(answer)} = {flatten(answer['value'])}"
    line += f" ({explain_reason(answer['reason'])})" if answer.get("reason") else ""
    similar = ", ".join(map(_quote_key, answer["similar"]))
    line += f"; possibly the same fact: {similar}" if similar else ""
    return ToolResult(line, ids=[answer["id"]])


def fact_as_of(call: ToolCall) -> ToolResult:
    """Read the values of facts at a time."""
    when = call.pick("as_of")
    try:
        if "attribute" not in call.arguments:
            held = {} if call.arguments.get("history") else {"as_of": utc_now()} | when
            query = held | {"subject": call.arguments["subject"], "limit": 100}
            facts = call.server.call("GET", "/v1/facts", query=query)["items"]
        else:
            path = f"/v1/facts/{path_name(call, 'subject')}/{path_name(call, 'attribute')}"
            if call.arguments.get("history"):
                facts = call.server.call("GET", f"{path}/history")["items"]
            else:
                facts = [call.server.call("GET", path, query=when)]
    except NotFound as error:
        # A missing fact is an answer, and the error may suggest a similar name.
        return ToolResult(str(error))
    return ToolResult(
        "\n".join(map(render_fact, facts)) or "There is no current value.", ids=[fact["id"] for fact in facts]
    )


def goals(call: ToolCall) -> ToolResult:
    """List goals, set one, or change one."""
    body = call.pick("title", "status", "progress", "due_at")
    if "id" in call.arguments:
        listed = [call.server.call("PATCH", f"/v1/goals/{call.id()}", body)]
    elif "title" in call.arguments:
        listed = [call.server.call("POST", "/v1/goals", body | call.origin())]
    else:
        listed = _unfinished_goals(call)
    rows = [render_goal(goal, call.shown, call.now) for goal in listed]
    return ToolResult("\n".join(rows) or "There is no such goal.", ids=[goal["id"] for goal in listed])


def lesson_outcome(call: ToolCall) -> ToolResult:
    """Report whether a lesson was followed."""
    path = f"/v1/lessons/surfaces/{segment(call.arguments['surface_id'])}"
    answer = call.server.call("POST", path, call.pick("followed", "note"))
    return ToolResult("recorded", ids=[answer["lesson_id"]])


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
    ids = [record["id"] for part in ("goals", "lessons", "decisions", "facts") for record in brief[part]]
    return ToolResult(render_brief(brief, call.shown, call.now), ids=ids)


def collect_brief(server: Server, viewer: Mapping[str, str]) -> dict[str, Any]:
    """Return counts, unfinished goals, the newest decisions, useful lessons, and current facts."""
    try:
        stats = server.call("GET", "/v1/stats")
    except NotFound:
        return {"workspace": "", "memories": {"active": 0}, "goals": [], "decisions": [], "lessons": [], "facts": []}
    unfinished = [
        goal
        for status in ("in_progress", "open")
        for goal in server.call("GET", "/v1/goals", query={**viewer, "status": status, "limit": SHOWN_EACH})["items"]
    ]
    decisions = server.call("GET", "/v1/memories", query=DECISIONS)["items"]
    lessons = server.call("GET", "/v1/lessons", query={**viewer, "limit": 2 * SHOWN_EACH})["items"]
    facts = server.call("GET", "/v1/facts", query={"as_of": utc_now(), "limit": SHOWN_EACH})["items"]
    return {
        "workspace": stats["workspace"],
        "memories": stats["memories"],
        "goals": unfinished[:SHOWN_EACH],
        "decisions": [shorten(decision) for decision in decisions],
        "lessons": [shorten_lesson(lesson) for lesson in lessons if lesson["usefulness"] != "dead"][:SHOWN_EACH],
        "facts": facts,
    }


def render_brief(brief: Mapping[str, Any], shown: ShownIds, now: datetime) -> str:
    """Render a brief."""
    if not brief["memories"]["active"]:
        return "This workspace has no memories yet. Store one with remember_batch."
    kinds = ", ".join(f"{count} {kind}" for kind, count in brief["memories"]["by_kind"].items() if count)
    rows = [f"Workspace {quote(brief['workspace'])}: {brief['memories']['active']} memories ({kinds})"]
    rows += render_section("Goals", [render_goal(goal, shown, now) for goal in brief["goals"]])
    rows += render_section("Lessons", [render_memory(lesson, shown, now) for lesson in brief["lessons"]])
    rows += render_section("Decisions", [render_memory(decision, shown, now) for decision in brief["decisions"]])
    rows += render_section("Facts", [render_fact(fact) for fact in brief["facts"]])
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


def _unfinished_goals(call: ToolCall) -> list[dict[str, Any]]:
    statuses = [call.arguments["status"]] if "status" in call.arguments else ["in_progress", "open"]
    try:
        return [
            goal
            for status in statuses
            for goal in call.server.call("GET", "/v1/goals", query=call.viewer() | {"status": status})["items"]
        ]
    except NotFound:
        return []


def _quote_key(fact: Mapping[str, Any]) -> str:
    return quote(f"{fact['subject']} {fact['attribute']}")


CORE: tuple[Tool, ...] = (
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
    ),
    Tool(
        "set_fact",
        "Set a value that may change, e.g. staging/port = 5433. The old value stays as history; null ends it.",
        set_fact,
        {
            "subject": TEXT,
            "attribute": TEXT,
            "value": TEXT,
            "valid_from": TIME,
            "session_id": SESSION,
            "to": TO,
        },
        ("subject", "attribute", "value"),
        ("value",),
        effect=Effect.ADDS,
    ),
    Tool(
        "goals",
        "List goals (default: unfinished ones). title creates a goal; id changes a goal.",
        goals,
        {
            "id": ID,
            "title": TEXT,
            "status": one_of(GoalStatus),
            "progress": NUMBER | {"description": "0 to 1"},
            "due_at": TIME,
            "session_id": SESSION,
        },
        effect=Effect.ADDS,
        reading=Reading("List goals (default: unfinished ones).", ("status", "session_id")),
    ),
    Tool(
        "lesson_outcome",
        "Report whether a lesson shown by prepare (surface ID) was followed. Useless lessons are no longer shown.",
        lesson_outcome,
        {"surface_id": TEXT, "followed": FLAG, "note": TEXT},
        ("surface_id", "followed"),
        effect=Effect.ADDS,
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
