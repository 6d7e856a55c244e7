"""The hook events of Codex, translated to Claude Code's events."""

from collections.abc import Mapping

from flask import Response

from pipeline.text.patches import list_patch_files
from pipeline.write.tool_actions import FILES_NAME
from web.call import Call
from web.endpoint import Api, Endpoint
from web.hooks.claude_code import answer_event
from web.hooks.event_fields import Fields

api = Api("codex")


@api.route(
    Endpoint(
        "POST",
        "/hooks/codex",
        "Answer a Codex hook event",
        of_folder=True,
        reads=True,
    )
)
def codex(call: Call) -> Response:
    """Answer one event."""
    # Codex cannot ask its user.
    return answer_event(call, "codex", read_codex, lambda output: {"hookSpecificOutput": output}, can_ask=False)


def read_codex(event: Fields) -> Fields:
    """Return an event with the files that a patch changes; the first is its path."""
    arguments = event.get("tool_input")
    patch = arguments.get("command", arguments.get("input")) if isinstance(arguments, Mapping) else None
    if event.get("tool_name") != "apply_patch" or not isinstance(patch, str):
        return event
    files = list_patch_files(patch)
    return event | {"tool_input": {"path": files[0], FILES_NAME: files}} if files else event
