"""Claude Code's hook events: context in, or nothing; the agent is never disturbed."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from flask import Response, request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from pipeline.records import MAX_FOLDER_CHARS, MAX_SESSION_ID_CHARS
from pipeline.records.people import personal_scope
from pipeline.services.agent_sessions import AgentSession, HookAnswer, identify_session
from pipeline.services.hook_runs import FAILED, describe_run
from pipeline.services.turns import Message, Role
from pipeline.services.workspace import Workspace
from pipeline.times import utc_now
from web.access_log import note_memories, note_workspace
from web.endpoint import Api, Call, Endpoint, json_response, workspace_of_folder
from web.hooks.transcript import read_transcript
from web.metrics import count_hook_event

api = Api("claude_code")

LONGEST_PROMPT = 4000
# How an event is counted that nobody handles.
UNREAD = "other"
MOST_SAID, MAX_SAID_CHARS = 200, 200_000

# An event as its host sends it, or what it is answered with.
Fields = dict[str, Any]
_FIELDS = TypeAdapter(Fields)

# What a host is told, and the answer that it is made of.
Handled = tuple[Fields | None, HookAnswer]
NOTED: Handled = (None, HookAnswer(reason="noted"))
# These may make a project's workspace.
WRITING = frozenset({"PostToolUse", "PostToolUseFailure", "Stop"})

Name = Annotated[str, StringConstraints(max_length=MAX_SESSION_ID_CHARS)]


class SaidMessage(BaseModel):
    """What was said in a turn, where the client of a host tells it."""

    role: Role
    content: Annotated[str, StringConstraints(max_length=MAX_SAID_CHARS)]
    at: Annotated[str, StringConstraints(max_length=40)] | None = None


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
    transcript_path: Annotated[str, StringConstraints(max_length=MAX_FOLDER_CHARS)] = ""
    said: Annotated[list[SaidMessage], Field(max_length=MOST_SAID)] = Field(default_factory=list)
    can_ask: bool = True
    """Whether the host can have its user asked before a tool: known of each host, whatever it says."""


@api.route(
    Endpoint(
        "POST",
        "/hooks/claude-code",
        "Take a Claude Code hook event; answer with context or an empty body",
        of_folder=True,
        reads=True,
    )
)
def claude_code(call: Call) -> Response:
    """Answer one event."""
    return answer_event(call, "claude-code", lambda said: said, lambda told: {"hookSpecificOutput": told})


def answer_event(
    call: Call, host: str, read: Callable[[Fields], Fields], write: Callable[[Fields], Fields], *, can_ask: bool = True
) -> Response:
    """Answer an event: what its host said is read in Claude Code's words, what it is told written in the host's.

    What is wrong with it goes to the error log, and the answer is empty.
    """
    name, began = UNREAD, time.perf_counter()
    told: Fields | None = None
    problem: str | None = None
    place: tuple[str, str | None] = (call.workspace_id, None)
    answer = HookAnswer()
    try:
        said = _FIELDS.validate_json(request.get_data(cache=False))
        event = HookEvent.model_validate(read(said) | {"can_ask": can_ask})
        handle = HANDLERS.get(event.hook_event_name)
        if handle is not None:
            name = event.hook_event_name
            workspace = _workspace(call, event, to_write=name in WRITING)
            place = workspace.id, _session(call, event).id or personal_scope(call.caller.person_id).id
            told, answer = handle(call, workspace, event)
        else:
            problem = _note(call, f"event {json.dumps(event.hook_event_name)[:60]} is not handled")
    except ValidationError as error:
        problem = _note(call, f"unreadable event: {error.error_count()} fields, first {error.errors()[0]['type']}")
    except Exception as error:  # noqa: BLE001 - whatever goes wrong here is no business of the agent's
        told, problem = None, _note(call, f"{type(error).__name__}: {error}")
    run = describe_run(name, host, place, began, answer)
    if problem is not None:
        run = replace(run, outcome=FAILED, reason=call.container.operations.redact(problem))
    count_hook_event(name, host, run.outcome)
    note_workspace(place[0], acts=False)
    note_memories(run.memory_ids)
    if answer.is_kept:
        call.container.hook_runs.record(run)
    said_back = write({"hookEventName": name} | told) if told else {}
    return json_response(said_back) if said_back else _empty()


def _prompt(call: Call, workspace: Workspace, event: HookEvent) -> Handled:
    message = event.prompt.strip()[:LONGEST_PROMPT]
    if not message:
        return None, HookAnswer(reason="the prompt is empty")
    return _context(call.container.agent_sessions.answer_prompt(workspace, _session(call, event), message))


def _session_start(call: Call, workspace: Workspace, event: HookEvent) -> Handled:
    return _context(call.container.agent_sessions.start_session(workspace, _session(call, event), event.source))


def _context(answer: HookAnswer) -> Handled:
    return None if answer.text is None else {"additionalContext": answer.text}, answer


def _before_tool(call: Call, workspace: Workspace, event: HookEvent) -> Handled:
    guard = call.container.agent_sessions.guard_tool_use(
        workspace, _session(call, event), event.tool_name, event.tool_input, can_ask=event.can_ask
    )
    if guard is None:
        return None, HookAnswer(reason="no critical lesson names it")
    told = {"permissionDecision": guard.decision, "permissionDecisionReason": guard.reason}
    return told, HookAnswer(guard.reason, guard.shown, guard.decision)


def _after_tool(call: Call, workspace: Workspace, event: HookEvent) -> Handled:
    return _record(call, workspace, event, ok=_worked(event.tool_response))


def _worked(response: Any) -> bool:
    """Tell whether a tool's response says nothing of a failure; hosts before PostToolUseFailure say it here."""
    if not isinstance(response, dict):
        return True
    code = response.get("exit_code", response.get("exitCode", 0))
    return not (response.get("is_error") is True or response.get("interrupted") is True or code not in (0, None))


def _after_failure(call: Call, workspace: Workspace, event: HookEvent) -> Handled:
    return _record(call, workspace, event, ok=False)


def _record(call: Call, workspace: Workspace, event: HookEvent, *, ok: bool) -> Handled:
    call.container.agent_sessions.record_tool_use(
        workspace, _session(call, event), event.tool_name, event.tool_input, ok=ok
    )
    return NOTED


def _stop(call: Call, workspace: Workspace, event: HookEvent) -> Handled:
    call.container.agent_sessions.end_turn(workspace, _session(call, event), _said(call, event))
    return NOTED


def _said(call: Call, event: HookEvent) -> Callable[[int | None], tuple[list[Message], int | None]] | None:
    """Return what reads what was said in a turn: the event itself tells it, or a transcript does."""
    if event.said:
        messages = _messages(_session(call, event).id or "", [one.model_dump() for one in event.said])
        return lambda _offset: (messages, None)
    # A person's transcript is on their machine: what stands under its path here is none of theirs.
    if not event.transcript_path or call.caller.person is not None:
        return None
    return partial(_read_said, Path(event.transcript_path), event.session_id)


def _read_said(transcript: Path, session_id: str, offset: int | None) -> tuple[list[Message], int | None]:
    said, behind = read_transcript(transcript, session_id, offset)
    return _messages(session_id, said), behind


def _messages(session_id: str, said: Sequence[Mapping[str, Any]]) -> list[Message]:
    now = utc_now()
    return [Message(session_id, Role(one["role"]), one["content"], one.get("at") or now) for one in said]


def _end(call: Call, workspace: Workspace, event: HookEvent) -> Handled:
    # A host may write the end of its transcript only after the last turn's event.
    call.container.agent_sessions.take_said(workspace, _session(call, event), _said(call, event))
    return _flush(call, workspace, event)


def _flush(call: Call, workspace: Workspace, _event: HookEvent) -> Handled:
    call.container.agent_sessions.flush(workspace)
    return NOTED


def _nothing(_call: Call, _workspace: Workspace, _event: HookEvent) -> Handled:
    """Take an event that says nothing to remember."""
    return NOTED


HANDLERS: dict[str, Callable[[Call, Workspace, HookEvent], Handled]] = {
    "UserPromptSubmit": _prompt,
    "SessionStart": _session_start,
    "PreToolUse": _before_tool,
    "PostToolUse": _after_tool,
    "PostToolUseFailure": _after_failure,
    "Stop": _stop,
    "SubagentStop": _nothing,
    "PreCompact": _flush,
    "SessionEnd": _end,
}


def _workspace(call: Call, event: HookEvent, *, to_write: bool = False) -> Workspace:
    return workspace_of_folder(call, event.cwd, to_write=to_write)


def _session(call: Call, event: HookEvent) -> AgentSession:
    return identify_session(event.session_id, event.agent_id, event.cwd, call.caller.person_id)


def _note(call: Call, message: str) -> str:
    call.container.operations.record_error("hooks.claude-code", message)
    return message


def _empty() -> Response:
    return Response(status=200)
