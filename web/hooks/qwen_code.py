"""The hook events of Qwen Code, which are those of Claude Code with the tools of Gemini CLI."""

from flask import Response

from pipeline.transcripts.tool_calls import TOOLS
from web.call import Call
from web.endpoint import Api, Endpoint
from web.hooks.claude_code import answer_event
from web.hooks.event_fields import Fields

api = Api("qwen_code")


@api.route(
    Endpoint(
        "POST",
        "/hooks/qwen-code",
        "Answer a Qwen Code hook event",
        of_folder=True,
        reads=True,
    )
)
def qwen_code(call: Call) -> Response:
    """Answer one event."""
    return answer_event(call, "qwen-code", read_qwen, lambda output: {"hookSpecificOutput": output})


def read_qwen(event: Fields) -> Fields:
    """Return an event with Claude Code's tool names and with the prompt as the user typed it."""
    tool, typed = event.get("tool_name"), event.get("submitted_prompt")
    read = dict(event)
    if isinstance(typed, str):
        # `prompt` contains what commands and earlier hooks added.
        read["prompt"] = typed
    if isinstance(tool, str):
        read["tool_name"] = TOOLS["qwen-code"].names.get(tool, tool)
    return read
