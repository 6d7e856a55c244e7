"""The hook events of pi: Reverie's extension sends Claude Code's events with pi's tools."""

from flask import Response

from web.call import Call
from web.endpoint import Api, Endpoint
from web.hooks.claude_code import answer_event
from web.hooks.plugin_events import translate_tool

api = Api("pi")


@api.route(
    Endpoint(
        "POST",
        "/hooks/pi",
        "Answer a pi hook event",
        of_folder=True,
        reads=True,
    )
)
def pi(call: Call) -> Response:
    """Answer one event."""
    # The extension refuses a call instead of asking, because pi may run without a user.
    return answer_event(call, "pi", translate_tool, lambda output: {"hookSpecificOutput": output}, can_ask=False)
