"""The hook events of Antigravity, translated to Claude Code's events and back.

Its events have no names and no prompt. Their fields differ, and the prompt is in the log of the conversation.
"""

from contextlib import suppress
from pathlib import Path

from pipeline.sessions.readers.antigravity import CUT, FULL
from pipeline.sessions.readers.tool_calls import translate
from web.hooks.event_fields import Fields
from web.hooks.session_files import read_open_prompt

HOST = "antigravity"
PROMPT, BEFORE_TOOL, STOP, OTHER = "UserPromptSubmit", "PreToolUse", "Stop", "PreInvocation"


def read_antigravity(event: Fields, *, is_local: bool) -> Fields:
    """Return an event with Claude Code's names; `is_local` is whether its files are on this machine."""
    read = dict(event)
    read["hook_event_name"] = name = _find_name(event)
    read["session_id"] = session_id = read.pop("conversationId", None)
    folders, path = event.get("workspacePaths"), event.get("transcript_path")
    if isinstance(folders, list) and folders:
        read["cwd"] = folders[0]
    if name == BEFORE_TOOL:
        call = event["toolCall"] if isinstance(event["toolCall"], dict) else {}
        read["tool_name"], read["tool_input"], _ = next(translate(HOST, call.get("name"), call.get("args")))
    if isinstance(path, str) and isinstance(session_id, str) and is_local:
        log = _find_log(path)
        read["transcript_path"] = str(log)
        if name == PROMPT:
            read["prompt"] = read_open_prompt(HOST, log, session_id)
    return read


def _find_name(event: Fields) -> str:
    if "terminationReason" in event:
        return STOP
    if "toolCall" in event:
        return BEFORE_TOOL
    # The model is called again after each tool; only its first call follows a prompt.
    return PROMPT if event.get("invocationNum") == 0 else OTHER


def _find_log(path: str) -> Path:
    """Return the complete log of a conversation, which is also imported, if there is one."""
    with suppress(RuntimeError):
        path = str(Path(path).expanduser())
    log = Path(path)
    return complete if log.name == CUT and (complete := log.with_name(FULL)).is_file() else log


def write_antigravity(output: Fields) -> Fields:
    """Return an answer: the decision before a tool, or a message of the system for this call of the model."""
    if "permissionDecision" in output:
        return {"decision": output["permissionDecision"], "reason": output.get("permissionDecisionReason", "")}
    text = output.get("additionalContext")
    return {} if text is None else {"injectSteps": [{"ephemeralMessage": text}]}
