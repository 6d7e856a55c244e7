"""The hook events of opencode: Reverie's plugin sends Claude Code's events with opencode's tools."""

from flask import Response

from pipeline.transcripts.opencode import unquote_prompt
from web.call import Call
from web.endpoint import Api, Endpoint
from web.hooks.claude_code import answer_event
from web.hooks.event_fields import Fields
from web.hooks.plugin_events import translate_tool, unwrap_prompts

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
    return unwrap_prompts(translate_tool(event, "reverie_"), unquote_prompt)
