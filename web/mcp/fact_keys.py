"""Facts that a call names by subject and attribute instead of an id."""

from dataclasses import replace

from pipeline.errors import FieldError, InvalidField
from web.mcp.tool import ToolCall, segment


def find_by_key(call: ToolCall) -> ToolCall:
    """Return the call with the id of the fact that it names by subject and attribute."""
    named = call.pick("subject", "attribute")
    if ("id" in call.arguments) == (len(named) == 2) or len(named) == 1:
        raise InvalidField(FieldError("id", "is required, or subject and attribute of a fact"))
    if not named:
        return call
    fact = call.server.call("GET", f"/v1/facts/{path_name(call, 'subject')}/{path_name(call, 'attribute')}")
    return replace(call, arguments={**call.arguments, "id": fact["id"]})


def path_name(call: ToolCall, name: str) -> str:
    """Return an argument as a part of the path of a fact."""
    # A canonical name has no slash, and a path would be cut at one.
    return segment(call.arguments[name].replace("/", " "))
