"""The hook events of Cursor, translated to Claude Code's events and back."""

from web.hooks.event_fields import Fields
from web.http.json_text import read_text_object

PROMPT = "UserPromptSubmit"
TOOLS = {"Shell": "Bash", "Delete": "Edit"}


def read_cursor(event: Fields) -> Fields:
    """Return an event with Claude Code's names, and with the result of a tool as an object."""
    read = dict(event)
    # Its transcripts have no times, so a delivered turn could not be compared with an imported one.
    read.pop("transcript_path", None)
    if event.get("hook_event_name") == "BeforeSubmitPrompt":
        read["hook_event_name"] = PROMPT
    tool = event.get("tool_name")
    if isinstance(tool, str):
        read["tool_name"] = TOOLS.get(tool, tool)
    output = read.pop("tool_output", None)
    if output is not None:
        # The result is JSON text.
        read["tool_response"] = read_text_object(output) if isinstance(output, str) else output
    if "error_message" in read:
        read["error"] = read.pop("error_message")
    return read


def write_cursor(output: Fields) -> Fields:
    """Return an answer: the decision before a tool, or context."""
    event, reason = output["hookEventName"], output.get("permissionDecisionReason", "")
    if "permissionDecision" in output:
        return {"permission": output["permissionDecision"], "user_message": reason, "agent_message": reason}
    if "additionalContext" not in output:
        return {}
    return ({"continue": True} if event == PROMPT else {}) | {"additional_context": output["additionalContext"]}
