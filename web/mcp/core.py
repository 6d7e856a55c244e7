"""The tools that every agent needs: few, and told apart by when to use them."""

from typing import Any

from pipeline.errors import NotFound
from pipeline.records import Kind, Outcome
from pipeline.times import utc_now
from pipeline.write.details import GoalStatus
from web.mcp.brief import brief, brief_text
from web.mcp.schema import FLAG, ID, NUMBER, OBJECT, SESSION, TEXT, TIME, items, limit, one_of, text
from web.mcp.text import compact, fact_line, goal_line, line, lines, shortened
from web.mcp.tool import Asked, Effect, Told, Tool, segment

RECALLED = 8
NOTHING = "nothing is known about this"
# A goal and a keyed fact have tools of their own.
STORED = [kind.value for kind in Kind if kind not in (Kind.GOAL, Kind.KEYED_FACT)]
HITS = items(id=ID, kind=TEXT, content=TEXT, occurred_at=TEXT, trust=TEXT, score=NUMBER, cut=FLAG)
FACTS = items(subject=TEXT, attribute=TEXT, value={}, valid_from=TEXT, valid_to={"type": ["string", "null"]})
GOALS = items(id=ID, title=TEXT, status=TEXT, progress=NUMBER)


def prepare(asked: Asked) -> Told:
    """Gather what bears on a request."""
    body = asked.given("message", "session_id") | {"cwd": asked.folder, "viewer": asked.viewer()}
    try:
        told = asked.server.call("POST", "/v1/prepare", body)
    except NotFound:
        return Told({"relevant": False, "text": "", "lessons": []}, NOTHING)
    for part in ("lessons", "decisions", "facts", "open_goals", "recent_activity", "memories"):
        for one in told[part]:
            asked.shown.short(one["id"])
    lessons = [{"id": one["id"], "surface_id": one["surface_id"], "content": one["content"]} for one in told["lessons"]]
    return Told({"relevant": told["relevant"], "text": told["text"], "lessons": lessons}, told["text"] or NOTHING)


def recall(asked: Asked) -> Told:
    """Find memories."""
    body = {"k": RECALLED} | asked.given("query", "k", "kinds", "since", "until", "as_of")
    try:
        told = asked.server.call("POST", "/v1/recall", body | {"viewer": asked.viewer()})
    except NotFound:
        return Told({"results": []}, NOTHING)
    hits = [shortened(hit) for hit in told["results"]]
    return Told({"results": hits, "degraded": told["degraded"]}, lines(hits, asked.shown, NOTHING, asked.now))


def get(asked: Asked) -> Told:
    """Read one memory."""
    memory = asked.server.call("GET", f"/v1/memories/{asked.id()}")
    unsaid = ("content", "content_hash", "provenance", "id", "kind", "trust", "instructs")
    rest = {name: value for name, value in memory.items() if value not in (None, [], {}, False) and name not in unsaid}
    return Told(memory, f"{line(memory | {'content': ''}, asked.shown, asked.now)}\n{_quoted(memory)}\n{compact(rest)}")


def remember_batch(asked: Asked) -> Told:
    """Store memories, attributed to the agent and its session."""
    session = asked.given("session_id")
    told = asked.server.call(
        "POST", "/v1/memories/batch", {"items": [_item(asked, one) | session for one in asked.arguments["items"]]}
    )
    said = [_outcome(asked, one) for one in told["results"]]
    return Told(told, "\n".join(said))


def set_fact(asked: Asked) -> Told:
    """Give a fact a value, or end the one that holds."""
    path = f"/v1/facts/{_name(asked, 'subject')}/{_name(asked, 'attribute')}"
    if asked.arguments["value"] is None:
        began = asked.given("valid_from")
        query = {"valid_to": began["valid_from"]} if began else None
        ended = asked.server.call("DELETE", path, query=query)
        return Told(ended, f"ended\n{fact_line(ended)}")
    body = asked.given("value", "valid_from", "session_id") | {"source": "agent"}
    told = asked.server.call("PUT", path, body)
    similar = ", ".join(f"{key['subject']} {key['attribute']}" for key in told["similar"])
    said = f"{told['outcome']}: {told['subject']} {told['attribute']} = {compact(told['value'])}"
    said += f" ({told['reason']})" if told.get("reason") else ""
    return Told(told, said + (f"; other names may mean the same: {similar}" if similar else ""))


def fact_as_of(asked: Asked) -> Told:
    """Read what held at an instant."""
    when = asked.given("as_of")
    try:
        if "attribute" not in asked.arguments:
            held = {} if asked.arguments.get("history") else {"as_of": utc_now()} | when
            query = held | {"subject": asked.arguments["subject"], "limit": 100}
            found = asked.server.call("GET", "/v1/facts", query=query)["items"]
        else:
            path = f"/v1/facts/{_name(asked, 'subject')}/{_name(asked, 'attribute')}"
            if asked.arguments.get("history"):
                found = asked.server.call("GET", f"{path}/history")["items"]
            else:
                found = [asked.server.call("GET", path, query=when)]
    except NotFound as error:
        # A fact that nobody set is an answer, and the server may know a name that is meant.
        return Told({"facts": []}, str(error))
    return Told({"facts": found}, "\n".join(map(fact_line, found)) or "no value holds")


def goals(asked: Asked) -> Told:
    """List goals, set one, or change one."""
    body = asked.given("title", "status", "progress", "due_at")
    if "id" in asked.arguments:
        found = [asked.server.call("PATCH", f"/v1/goals/{asked.id()}", body)]
    elif "title" in asked.arguments:
        session = asked.given("session_id")
        found = [asked.server.call("POST", "/v1/goals", body | session | {"source": "agent"})]
    else:
        found = _listed(asked)
    return Told(
        {"goals": found}, "\n".join(goal_line(one, asked.shown, asked.now) for one in found) or "no such goal is set"
    )


def lesson_outcome(asked: Asked) -> Told:
    """Say whether a lesson was followed."""
    path = f"/v1/lessons/surfaces/{segment(asked.arguments['surface_id'])}"
    told = asked.server.call("POST", path, asked.given("followed", "note"))
    return Told(told, "noted")


def forget(asked: Asked) -> Told:
    """Archive or purge a memory."""
    hard = asked.arguments.get("hard") is True
    query = {"hard": "true"} if hard else None
    told = asked.server.call("DELETE", f"/v1/memories/{asked.id()}", query=query)
    return Told(told, "every trace is being erased" if hard else "archived; it can be restored")


def overview(asked: Asked) -> Told:
    """Tell what the workspace holds."""
    found = brief(asked.server, asked.viewer())
    return Told(found, brief_text(found, asked.shown, asked.now))


def _item(asked: Asked, given: Any) -> Any:
    if not isinstance(given, dict):
        return given
    item = {name: value for name, value in given.items() if value is not None} | {"source": "agent"}
    agent = asked.arguments.get("agent") or asked.agent
    if agent:
        metadata = item.get("metadata", {})
        item["metadata"] = metadata | {"agent": agent} if isinstance(metadata, dict) else metadata
    if isinstance(item.get("edges"), list):
        item["edges"] = [
            edge | {"to": asked.whole(str(edge["to"]), "edges.to")} if isinstance(edge, dict) and "to" in edge else edge
            for edge in item["edges"]
        ]
    return item


def _outcome(asked: Asked, receipt: dict[str, Any]) -> str:
    # What was turned away has no memory that could be read.
    kept = receipt["outcome"] != Outcome.REJECTED
    shown = f" [{asked.shown.short(receipt.get('duplicate_of') or receipt['id'])}]" if kept else ""
    return f"{receipt['outcome']}{shown}" + (f": {receipt['reason']}" if receipt.get("reason") else "")


def _listed(asked: Asked) -> list[dict[str, Any]]:
    wanted = [asked.arguments["status"]] if "status" in asked.arguments else ["in_progress", "open"]
    try:
        return [
            goal
            for status in wanted
            for goal in asked.server.call("GET", "/v1/goals", query=asked.viewer() | {"status": status})["items"]
        ]
    except NotFound:
        return []


def _quoted(memory: dict[str, Any]) -> str:
    content = str(memory["content"])
    if memory["trust"] != "evidence" and not memory["instructs"]:
        return content
    return "\n".join(f"> {row}" for row in content.splitlines())


def _name(asked: Asked, name: str) -> str:
    # A canonical name has no slash, and a path would be cut at one.
    return segment(asked.arguments[name].replace("/", " "))


CORE: tuple[Tool, ...] = (
    Tool(
        "prepare",
        "Call first with each new request: lessons to follow, decisions, facts and goals that bear on it. "
        "Empty when nothing does.",
        prepare,
        {"message": text("The request, as the user wrote it"), "session_id": SESSION},
        ("message",),
        {"relevant": FLAG, "text": TEXT, "lessons": items(id=ID, surface_id=TEXT, content=TEXT)},
    ),
    Tool(
        "recall",
        "Search by meaning and words for something specific that prepare did not bring. Long texts are cut; get has "
        "the whole. An empty query lists what matters most.",
        recall,
        {
            "query": text("A question or key words"),
            "k": limit(100),
            "kinds": {"type": "array", "items": one_of(Kind)},
            "since": TIME,
            "until": TEXT,
            "as_of": text("What was believed then"),
            "session_id": SESSION,
        },
        ("query",),
        {"results": HITS, "degraded": FLAG},
    ),
    Tool(
        "get",
        "Read one memory whole, with details, edges and history.",
        get,
        {"id": ID},
        ("id",),
        {"id": ID, "content": TEXT, "kind": TEXT, "details": OBJECT, "trust": TEXT},
    ),
    Tool(
        "remember_batch",
        "Store what later sessions need: decisions with reasons, lessons, findings. One statement each, clear without "
        "this conversation. Not for small talk or what the code says; values that change: set_fact, tasks: goals.",
        remember_batch,
        {
            "items": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "content": TEXT,
                        "kind": one_of(STORED),
                        "details": OBJECT
                        | {"description": "decision: reason, alternatives[]; lesson: rule, applies_when, severity"},
                        "importance": NUMBER | {"description": "0 to 1; rarely needed"},
                        "tags": {"type": "array", "items": TEXT},
                        "edges": items(kind=one_of(["cause", "supports", "contradicts", "supersedes"]), to=ID),
                        "occurred_at": TIME,
                    },
                    "required": ["content"],
                },
            },
            "session_id": SESSION,
            "agent": text("Your name, if not the host's"),
        },
        ("items",),
        {"results": items(id=ID, outcome=TEXT, reason=TEXT, duplicate_of=ID)},
        Effect.ADDS,
    ),
    Tool(
        "set_fact",
        "Set a value that may change, as staging/port = 5433. The value before is kept as history; null ends it.",
        set_fact,
        {
            "subject": TEXT,
            "attribute": TEXT,
            "value": {"type": ["string", "number", "boolean", "null"]},
            "valid_from": TIME,
            "session_id": SESSION,
        },
        ("subject", "attribute", "value"),
        {"subject": TEXT, "attribute": TEXT, "value": {}, "outcome": TEXT},
        Effect.ADDS,
    ),
    Tool(
        "fact_as_of",
        "Read a fact's value, now or at an instant; without attribute all facts of the subject.",
        fact_as_of,
        {"subject": TEXT, "attribute": TEXT, "as_of": TIME, "history": FLAG | {"description": "All values"}},
        ("subject",),
        {"facts": FACTS},
    ),
    Tool(
        "goals",
        "List goals, unfinished ones unless status is given; title alone sets one; id changes one.",
        goals,
        {
            "id": ID,
            "title": TEXT,
            "status": one_of(GoalStatus),
            "progress": NUMBER | {"description": "0 to 1"},
            "due_at": TIME,
            "session_id": SESSION,
        },
        (),
        {"goals": GOALS},
        Effect.ADDS,
    ),
    Tool(
        "lesson_outcome",
        "Say whether a lesson that prepare showed (surface ID) was followed; lessons that do not help go silent.",
        lesson_outcome,
        {"surface_id": TEXT, "followed": FLAG, "note": TEXT},
        ("surface_id", "followed"),
        {"lesson_id": ID, "followed": FLAG},
        Effect.ADDS,
    ),
    Tool(
        "forget",
        "Archive a memory that is wrong or outdated; restorable.",
        forget,
        {"id": ID, "hard": FLAG | {"description": "Erase every trace for good: only when the user asks for it"}},
        ("id",),
        {"id": ID, "purged": FLAG},
        Effect.FORGETS,
    ),
    Tool(
        "overview",
        "What this project's memory holds: counts, goals, decisions, lessons, facts. For a first look; prepare serves "
        "a request better.",
        overview,
        {},
        (),
        {"workspace": TEXT, "memories": OBJECT, "goals": GOALS, "decisions": HITS, "lessons": HITS, "facts": FACTS},
    ),
)
