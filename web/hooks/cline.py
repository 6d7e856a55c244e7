"""The hook events of Cline: Reverie's plugin sends Claude Code's events with Cline's tools."""

from flask import Response

from pipeline.transcripts.cline_messages import unwrap_prompt
from web.call import Call
from web.endpoint import Api, Endpoint
from web.hooks.claude_code import answer_event
from web.hooks.event_fields import Fields
from web.hooks.plugin_events import translate_tool, unwrap_prompts

api = Api("cline")


@api.route(
    Endpoint(
        "POST",
        "/hooks/cline",
        "Answer a Cline hook event",
        of_folder=True,
        reads=True,
    )
)
def cline(call: Call) -> Response:
    """Answer one event."""
    # A plugin cannot ask Cline's user.
    return answer_event(call, "cline", read_cline, lambda output: {"hookSpecificOutput": output}, can_ask=False)


def read_cline(event: Fields) -> Fields:
    """Return an event with Claude Code's tools, and with prompts as the user typed them."""
    return unwrap_prompts(translate_tool(event, "reverie__"), unwrap_prompt)
