"""The hook events of opencode: Reverie's plugin sends Claude Code's events with opencode's tools."""

from typing import Any

from flask import Response

from pipeline.transcripts.opencode import unquote_prompt
from web.call import Call
from web.endpoint import Api, Endpoint
from web.hooks.claude_code import answer_event
from web.hooks.event_fields import Fields
from web.hooks.plugin_events import translate_tool

api = Api("opencode")


@api.route(
    Endpoint(
        "POST",
        "/hooks/opencode",
        "Answer an opencode hook event",
        of_folder=True,
        reads=True,
    )
)
def opencode(call: Call) -> Response:
    """Answer one event."""
    # A plugin cannot ask opencode's user.
    return answer_event(call, "opencode", read_opencode, lambda output: {"hookSpecificOutput": output}, can_ask=False)


def read_opencode(event: Fields) -> Fields:
    """Return an event with Claude Code's tools, and with prompts as the user typed them."""
    read = dict(translate_tool(event, "reverie_"))
    if isinstance(read.get("prompt"), str):
        read["prompt"] = unquote_prompt(read["prompt"])
    if isinstance(read.get("said"), list):
        read["said"] = [_read_message(message) for message in read["said"]]
    return read


def _read_message(message: Any) -> Any:
    is_typed = isinstance(message, dict) and message.get("role") == "user" and isinstance(message.get("content"), str)
    return message | {"content": unquote_prompt(message["content"])} if is_typed else message
