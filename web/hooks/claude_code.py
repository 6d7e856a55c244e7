"""Claude Code's hook events: context in, or nothing; the agent is never disturbed."""

import json
from collections.abc import Callable
from typing import Annotated, Any

from flask import Response, request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from pipeline.records import MAX_FOLDER_CHARS, MAX_SESSION_ID_CHARS
from pipeline.services.agent_sessions import AgentSession, identify_session
from pipeline.services.workspace import Workspace
from web.endpoint import Api, Call, Endpoint, json_response, workspace_of_folder
from web.metrics import count_hook_event

api = Api("claude_code")

LONGEST_PROMPT = 4000
# How an event is counted that nobody handles, and one that went wrong.
UNREAD, FAILED = "other", "failed"

# An event as its host sends it, or what it is answered with.
Fields = dict[str, Any]
_FIELDS = TypeAdapter(Fields)

Name = Annotated[str, StringConstraints(max_length=MAX_SESSION_ID_CHARS)]


class HookEvent(BaseModel):
    """The fields of an event that Reverie reads; hosts add others freely.

    An event with a longer name than any is passed over: cut, two sessions' names could become one.
    """

    model_config = ConfigDict(extra="ignore")

    hook_event_name: Name
    cwd: Annotated[str, StringConstraints(max_length=MAX_FOLDER_CHARS)] = ""
    session_id: Name = ""
    agent_id: Name = ""
    prompt: str = ""
    source: Name = ""
    tool_name: Name = ""
    tool_input: dict[str, Any] = Field(default_factory=dict)
    tool_response: Any = None
    can_ask: bool = True
    """Whether the host can have its user asked before a tool: known of each host, whatever it says."""


@api.route(
    Endpoint(
        "POST",
        "/hooks/claude-code",
        "Take a Claude Code hook event; answer with context or an empty body",
        of_folder=True,
    )
)
def claude_code(call: Call) -> Response:
    """Answer one event."""
    return answer_event(call, lambda said: said, lambda told: {"hookSpecificOutput": told})


def answer_event(
    call: Call, read: Callable[[Fields], Fields], write: Callable[[Fields], Fields], *, can_ask: bool = True
) -> Response:
    """Answer an event: what its host said is read in Claude Code's words, what it is told written in the host's.

    What is wrong with it goes to the error log, and the answer is empty.
    """
    name, told = UNREAD, None
    try:
        said = _FIELDS.validate_json(request.get_data(cache=False))
        event = HookEvent.model_validate(read(said) | {"can_ask": can_ask})
        handle = HANDLERS.get(event.hook_event_name)
        if handle is not None:
            name = event.hook_event_name
            told = handle(call, event)
        else:
            _note(call, f"event {json.dumps(event.hook_event_name)[:60]} is not handled")
        outcome = FAILED if handle is None else _outcome_of(told)
    except ValidationError as error:
        outcome = FAILED
        _note(call, f"unreadable event: {error.error_count()} fields, first {error.errors()[0]['type']}")
    except Exception as error:  # noqa: BLE001 - whatever goes wrong here is no business of the agent's
        told, outcome = None, FAILED
        _note(call, f"{type(error).__name__}: {error}")
    count_hook_event(name, outcome)
    answer = write({"hookEventName": name} | told) if told else {}
    return json_response(answer) if answer else _empty()


def _outcome_of(told: Fields | None) -> str:
    if told is None:
        return "silent"
    return str(told.get("permissionDecision", "told"))


def _prompt(call: Call, event: HookEvent) -> Fields | None:
    message = event.prompt.strip()[:LONGEST_PROMPT]
    if not message:
        return None
    return _context(call.container.agent_sessions.answer_prompt(_workspace(call, event), _session(event), message))


def _session_start(call: Call, event: HookEvent) -> Fields | None:
    text = call.container.agent_sessions.start_session(_workspace(call, event), _session(event), event.source)
    return _context(text)


def _context(text: str | None) -> Fields | None:
    return None if text is None else {"additionalContext": text}


def _before_tool(call: Call, event: HookEvent) -> Fields | None:
    guard = call.container.agent_sessions.guard_tool_use(
        _workspace(call, event), _session(event), event.tool_name, event.tool_input, can_ask=event.can_ask
    )
    if guard is None:
        return None
    return {"permissionDecision": guard.decision, "permissionDecisionReason": guard.reason}


def _after_tool(call: Call, event: HookEvent) -> None:
    _record(call, event, ok=_worked(event.tool_response))


def _worked(response: Any) -> bool:
    """Tell whether a tool's response says nothing of a failure; hosts before PostToolUseFailure say it here."""
    if not isinstance(response, dict):
        return True
    code = response.get("exit_code", response.get("exitCode", 0))
    return not (response.get("is_error") is True or response.get("interrupted") is True or code not in (0, None))


def _after_failure(call: Call, event: HookEvent) -> None:
    _record(call, event, ok=False)


def _record(call: Call, event: HookEvent, *, ok: bool) -> None:
    workspace = _workspace(call, event, to_write=True)
    call.container.agent_sessions.record_tool_use(workspace, _session(event), event.tool_name, event.tool_input, ok=ok)


def _stop(call: Call, event: HookEvent) -> None:
    call.container.agent_sessions.end_turn(_workspace(call, event, to_write=True), _session(event))


def _flush(call: Call, event: HookEvent) -> None:
    call.container.agent_sessions.flush(_workspace(call, event))


def _nothing(_call: Call, _event: HookEvent) -> None:
    """Take an event that says nothing to remember."""


HANDLERS: dict[str, Callable[[Call, HookEvent], Fields | None]] = {
    "UserPromptSubmit": _prompt,
    "SessionStart": _session_start,
    "PreToolUse": _before_tool,
    "PostToolUse": _after_tool,
    "PostToolUseFailure": _after_failure,
    "Stop": _stop,
    "SubagentStop": _nothing,
    "PreCompact": _flush,
    "SessionEnd": _flush,
}


def _workspace(call: Call, event: HookEvent, *, to_write: bool = False) -> Workspace:
    return workspace_of_folder(call, event.cwd, to_write=to_write)


def _session(event: HookEvent) -> AgentSession:
    return identify_session(event.session_id, event.agent_id, event.cwd)


def _note(call: Call, message: str) -> None:
    call.container.operations.record_error("hooks.claude-code", message)


def _empty() -> Response:
    return Response(status=200)
