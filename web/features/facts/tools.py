"""Tools for facts."""

from collections.abc import Mapping
from typing import Any

from pipeline.kernel.errors import NotFound
from pipeline.kernel.times import utc_now
from pipeline.text.quoting import flatten, quote
from web.mcp.rendering import explain_reason, speaker_of
from web.mcp.tool import (
    FLAG,
    SESSION,
    SHOWN_EACH,
    TEXT,
    TIME,
    TO,
    BriefPart,
    Effect,
    Server,
    Tool,
    ToolCall,
    ToolResult,
    path_name,
)


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


def _quote_key(fact: Mapping[str, Any]) -> str:
    return quote(f"{fact['subject']} {fact['attribute']}")


def render_fact(fact: Mapping[str, Any]) -> str:
    """Render a value and when it is valid."""
    until = f" until {fact['valid_to']}" if fact.get("valid_to") else ""
    quoted = speaker_of(fact).say(f"{fact['subject']} {fact['attribute']} = {flatten(fact['value'])}")
    return f"- {quoted}, since {fact['valid_from']}{until}"


def _read_current(server: Server, _viewer: Mapping[str, str]) -> Any:
    return server.call("GET", "/v1/facts", query={"as_of": utc_now(), "limit": SHOWN_EACH})["items"]


TOOLS = (
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
        stores=lambda _arguments: True,
        is_core=True,
        place=45,
    ),
    Tool(
        "fact_as_of",
        "Read the value of a fact, now or at a time; without attribute all facts of the subject.",
        fact_as_of,
        {"subject": TEXT, "attribute": TEXT, "as_of": TIME, "history": FLAG | {"description": "All values"}},
        ("subject",),
        place=5,
    ),
)
BRIEF = (BriefPart("facts", "Facts", _read_current, lambda fact, _shown, _now: render_fact(fact), 15),)
