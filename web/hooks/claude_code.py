"""Claude Code's hook events: answer with context or nothing; errors never reach the agent."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from flask import Response, request

from pipeline.features.capture.usecases import describe_lost_orders
from pipeline.features.obedience.usecases import MadeCall
from pipeline.kernel.errors import StoreUnavailable
from pipeline.kernel.records.hooks import AgentSession, HookAnswer, SpooledMark
from pipeline.kernel.records.people import personal_scope
from pipeline.kernel.store.host_activity import Sign
from pipeline.kernel.times import utc_text
from pipeline.kernel.workspace import Workspace
from pipeline.prompt.agent_events import identify_session
from pipeline.prompt.deliveries import BEFORE_TOOL
from pipeline.prompt.history import FAILED, describe_run
from pipeline.prompt.spooled_events import record_spooled_action, record_spooled_prompt
from pipeline.prompt.subagents.usecases import SPAWNING, Report, Spawn, Subagent
from pipeline.sessions.intake_usecases import SessionSource
from web.hooks.event import HookEvent, read_event, read_outcome, read_said
from web.hooks.event_fields import Fields, unify_fields
from web.hooks.held_events import hold_event, release, wait_for_reading
from web.hooks.session_files import find_reader, read_session
from web.hooks.version_skew import compare_builds
from web.hosts.hook_entries import reads_context_of_acts
from web.http.access_log import note_memories, note_workspace
from web.http.call import Call, describe_earlier_memories, workspace_finder, workspace_of_folder
from web.http.contract import SPOOLED_AGAIN, SPOOLED_HEADER, WAIT_HEADER
from web.http.endpoint import Api, Endpoint, json_response
from web.http.json_text import ReadObject, read_object
from web.http.metrics import count_hook_event
from web.http.recording import check_hosts

api = Api("claude_code")

# An answer while the server is still loading takes no longer.
LONGEST_WAIT_MS = 3000
# Longer numbers are no time of this millennium.
NS_DIGITS = 20
# The name under which unhandled events are counted.
UNREAD = "other"

# The fields of the answer to a host, and the answer that they are made of.
Handled = tuple[Fields | None, HookAnswer]
NOTED: Handled = (None, HookAnswer(reason="noted"))
# Events that may be handled twice.
REPEATABLE = frozenset({"Stop", "PreCompact", "SessionEnd", "SubagentStop"})
# Events that may create a project's workspace.
WRITING = frozenset({"PostToolUse", "PostToolUseFailure", "Stop"})


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
    return answer_event(call, "claude-code", dict, write_claude_code)


def write_claude_code(output: Fields) -> Fields:
    """Return an answer in the form that most hosts share."""
    return {"hookSpecificOutput": output}


def answer_event(
    call: Call, host: str, read: Callable[[Fields], Fields], write: Callable[[Fields], Fields], *, can_ask: bool = True
) -> Response:
    """Answer an event; `read` and `write` translate between the host's fields and Claude Code's.

    Errors go to the error log, and the answer is then empty.
    """
    compare_builds(call)
    name, began = UNREAD, time.perf_counter()
    output: Fields | None = None
    problem: str | None = None
    workspace_and_session: tuple[str, str | None] = (call.workspace_id, None)
    answer, event = HookAnswer(), HookEvent()
    try:
        event, fields = _read(call, request.get_data(cache=False), host, read, can_ask=can_ask)
        _note_dropped(call, host, event)
        call = replace(call, caller=replace(call.caller, is_read_only=call.caller.is_read_only or event.is_read_only))
        if event.name in HANDLERS:
            name, event = event.name, locate_event(call, event, host)
            workspace = workspace_of_folder(call, event.cwd, to_write=name in WRITING)
            workspace_and_session = workspace.id, _session(call, event).id or personal_scope(call.caller.person_id).id
            output, answer = _handle(call, workspace, event, host, fields)
        else:
            answer = HookAnswer(reason="the event is not handled")
    except Exception as error:
        if isinstance(error, StoreUnavailable) and _read_spooled(call) is not None:
            # The spool delivers it again.
            raise
        output, problem = _report_lost_orders(event, error), f"{type(error).__name__}: {error}"
        call.container.operations.record_error("hooks.claude-code", problem)
    run = describe_run(name, host, workspace_and_session, began, answer)
    if problem is not None:
        run = replace(run, outcome=FAILED, reason=call.container.operations.redact(problem))
    count_hook_event(name, host, run.outcome)
    note_workspace(workspace_and_session[0], acts=False)
    note_memories(run.memory_ids)
    if answer.is_kept and not call.caller.is_read_only:
        call.container.agents.hook_runs.record(run)
    said_back = write({"hookEventName": name} | output) if output else {}
    return json_response(said_back) if said_back else Response(status=200)


def _report_lost_orders(event: HookEvent, error: Exception) -> Fields | None:
    """Return what to say if the orders to the memory in a prompt were not carried out."""
    says = describe_lost_orders(event.prompt, error) if event.prompt else None
    return None if says is None else {"additionalContext": says}


def _note_sign(call: Call, host: str, sign: Sign) -> None:
    """Note when a host of this machine was heard and recorded. A person of a team has hosts elsewhere."""
    if call.caller.person is not None:
        return
    try:
        call.container.host_activity.note(host, sign)
    except OSError as error:
        call.container.operations.record_error_once("hooks", f"the time of an event cannot be noted: {error}")


def _handle(call: Call, workspace: Workspace, event: HookEvent, host: str, fields: Fields) -> Handled:
    """Answer an event, and note that the host was heard; for an event from the spool, no agent waits."""
    output, answer = _handle_once(call, workspace, event, host, fields)
    if event.spooled is None:
        _note_sign(call, host, Sign.HOOK)
        if answer.text:
            _note_sign(call, host, Sign.SHOWN)
        return output, answer
    # A crash may have interrupted the first delivery after its record.
    return None, replace(answer, is_kept=answer.is_kept and not event.spooled.is_repeated)


def _handle_once(call: Call, workspace: Workspace, event: HookEvent, host: str, fields: Fields) -> Handled:
    """Answer an event. A repeated delivery records no run, and shows and stores nothing again."""
    session, name = _session(call, event), event.name
    handle = partial(HANDLERS[name], call, workspace, event)
    if session.id is None:
        return handle()

    def repeat(first: Handled | None) -> Handled:
        # The transcript may have grown since. Each of its records is read once.
        if name in REPEATABLE and not event.said:
            return None, replace(handle()[1], is_kept=False)
        # A host applies the strictest of several decisions, and asks its user once if they are equal.
        # Context would be shown twice.
        is_decision = first is not None and first[0] is not None and "permissionDecision" in first[0]
        output = first[0] if first is not None and name == BEFORE_TOOL and is_decision else None
        return output, HookAnswer(reason="the event was delivered twice", is_kept=False)

    answered: Handled = call.container.hook_deliveries.answer(
        (host, workspace.id, session.id), name, fields, handle, repeat
    )
    return answered


def _read(
    call: Call, body: bytes, host: str, read: Callable[[Fields], Fields], *, can_ask: bool
) -> tuple[HookEvent, Fields]:
    """Return the event in a request's body, and its fields. Anything but a JSON object is an event without fields."""
    try:
        sent = unify_fields(read_object(body))
    except ValueError:
        sent = ReadObject({}, is_whole=False)
    event = read_event(read(sent.fields), can_ask=can_ask, host=host)
    lost = sent.broken if sent.has_read("tool_input") else sent.broken | {"tool_input"}
    return replace(event, dropped=event.dropped | lost, spooled=_read_spooled(call), sent=sent.fields), sent.fields


def _note_dropped(call: Call, host: str, event: HookEvent) -> None:
    """Log once that fields could not be read or that the event is unknown; hosts repeat such events."""
    problems = [f"{field} could not be read" for field in sorted(event.dropped)]
    if event.name not in HANDLERS:
        problems.append("Reverie does not handle it")
    if problems:
        says = f"event {event.name!r} of {host}: {', '.join(problems)}"
        call.container.operations.record_error_once("hooks.claude-code", says)


def _prompt(call: Call, workspace: Workspace, event: HookEvent) -> Handled:
    if not event.prompt.strip():
        return None, HookAnswer(reason="the prompt is empty")
    own = partial(workspace_of_folder, call, event.cwd, to_write=True)
    session = _session(call, event)
    # A turn that was interrupted has no other end.
    call.container.agents.sessions.take_earlier(workspace, session, _said(call, event))
    if event.spooled is not None:
        services = call.container
        record_spooled_prompt(
            services.agents.sessions,
            services.contexts,
            services.feedback,
            workspace,
            session,
            event.prompt,
            own,
            event.spooled,
        )
        return NOTED
    return _context(
        call.container.agents.sessions.answer_prompt(workspace, session, event.prompt, own, _read_wait_ms())
    )


def _read_wait_ms() -> int:
    waits = request.headers.get(WAIT_HEADER, "")
    return min(int(waits), LONGEST_WAIT_MS) if waits.isascii() and waits.isdigit() else 0


def _read_spooled(call: Call) -> SpooledMark | None:
    """Return the mark of an event from the spool. Only the server of the data directory delivers those."""
    sent, _, again = request.headers.get(SPOOLED_HEADER, "").partition(" ")
    if call.caller.person is not None or not (sent.isascii() and sent.isdigit() and len(sent) <= NS_DIGITS):
        return None
    return SpooledMark(utc_text(datetime.fromtimestamp(int(sent) / 1e9, UTC)), int(sent), again == SPOOLED_AGAIN)


def _session_start(call: Call, workspace: Workspace, event: HookEvent) -> Handled:
    sessions, session = call.container.agents.sessions, _session(call, event)
    sessions.continue_silence(workspace, session, _said(call, event))
    answer = sessions.start_session(workspace, session, event.source)
    if not (workspace.access.is_enabled and answer.is_kept):
        return _context(answer)
    earlier = [] if workspace.exists else describe_earlier_memories(call, event.cwd)
    text = "\n".join(filter(None, [_take_warning(call), *earlier, answer.text]))
    return _context(replace(answer, text=text or None))


def _take_warning(call: Call) -> str | None:
    """Return what the owner's hosts miss, once a day."""
    if call.caller.person is not None or call.caller.is_read_only:
        return None
    services = call.container
    return services.recording.take_warning(partial(check_hosts, services.settings.paths))


def _context(answer: HookAnswer) -> Handled:
    return None if answer.text is None else {"additionalContext": answer.text}, answer


def _before_tool(call: Call, workspace: Workspace, event: HookEvent) -> Handled:
    is_whole = event.dropped.isdisjoint({"tool_name", "tool_input"})
    guard = call.container.agents.sessions.guard_tool_use(
        workspace,
        _session(call, event),
        event.tool_name,
        event.tool_input,
        is_whole=is_whole,
        can_ask=event.can_ask,
        # The folders of a person of a team are on another machine.
        find_project=(
            (lambda folder: (workspace_of_folder(call, folder), _session(call, replace(event, cwd=folder))))
            if call.caller.person is None
            else None
        ),
    )
    if guard is None:
        if event.tool_name in SPAWNING:
            call.container.agents.subagents.note_task(workspace, _session(call, event), _read_spawn(event))
        if not (is_whole and event.spooled is None and reads_context_of_acts(event.host)):
            return None, HookAnswer(reason="no critical lesson names it")
        return _context(
            call.container.agents.sessions.advise_tool_use(
                workspace, _session(call, event), event.tool_name, event.tool_input
            )
        )
    output = {"permissionDecision": guard.decision, "permissionDecisionReason": guard.reason}
    return output, HookAnswer(guard.reason, guard.shown, guard.decision)


def _read_spawn(event: HookEvent) -> Spawn:
    role, task = (str(event.tool_input.get(name) or "") for name in ("subagent_type", "prompt"))
    return Spawn(event.turn_id, event.call_id, role, task)


def _after_tool(call: Call, workspace: Workspace, event: HookEvent) -> Handled:
    services, session = call.container, _session(call, event)
    outcome = read_outcome(event, failed=event.name == "PostToolUseFailure")
    if event.tool_name in SPAWNING and not outcome.ok:
        services.agents.subagents.discard_task(session, _read_spawn(event))
    # A person's transcript is on their own machine.
    transcript = event.transcript_path if call.caller.person is None else ""
    made = MadeCall(event.tool_name, event.tool_input, outcome, event.call_id, transcript)
    services.agents.obedience.record(workspace, session, made, event.spooled_at)
    if event.spooled is not None:
        action = event.tool_name, event.tool_input, outcome
        record_spooled_action(services.agents.sessions, services.feedback, workspace, session, action, event.spooled)
        return NOTED
    return _context(
        services.agents.sessions.record_tool_use(workspace, session, event.tool_name, event.tool_input, outcome)
    )


def _stop(call: Call, workspace: Workspace, event: HookEvent) -> Handled:
    session = _session(call, event)
    event, held = hold_event(call, workspace, session, event)
    said = _said(call, event, held)
    if said is not None:
        _note_sign(call, event.host, Sign.TURN_ENDED)
    call.container.agents.sessions.end_turn(workspace, session, said, event.spooled_at)
    if said is not None and not held and event.spooled is None:
        wait_for_reading(call)
    return NOTED


def _said(call: Call, event: HookEvent, held: str = "") -> SessionSource | None:
    """Return the source of a turn's messages: the event itself, which may be held, or a transcript."""
    find_workspace = workspace_finder(call, to_write=True)

    def note_taken() -> None:
        _note_sign(call, event.host, Sign.TURN_TAKEN)
        release(call, held)

    if event.said:
        part = read_said(event)
        return SessionSource(lambda _mark: iter([part]), find_workspace, note_taken=note_taken)
    # A person's transcript is on their own machine. A file with that path on this machine is another one.
    if not event.transcript_path or call.caller.person is not None:
        return None
    file = Path(event.transcript_path)
    read = partial(read_session, event.host, file, event.session_id)
    return SessionSource(read, find_workspace, (find_reader(event.host), file), note_taken)


def _end(call: Call, workspace: Workspace, event: HookEvent) -> Handled:
    # A host may write the end of its transcript after the event of the last turn.
    session = _session(call, event)
    event, held = hold_event(call, workspace, session, event)
    call.container.agents.sessions.take_said(workspace, session, _said(call, event, held))
    return _flush(call, workspace, event)


def _flush(call: Call, workspace: Workspace, _event: HookEvent) -> Handled:
    call.container.agents.sessions.flush(workspace)
    return NOTED


def _subagent_start(call: Call, workspace: Workspace, event: HookEvent) -> Handled:
    subagent = Subagent(_session(call, event), event.agent_type)
    return _context(call.container.agents.subagents.start(workspace, subagent, event.turn_id))


def _subagent_stop(call: Call, workspace: Workspace, event: HookEvent) -> Handled:
    subagent = Subagent(_session(call, event), event.agent_type)
    create = partial(workspace_of_folder, call, event.cwd, to_write=True)
    report = Report(event.host, event.report, event.spooled_at)
    return None, call.container.agents.subagents.stop(workspace, subagent, report, create)


def _skip(_call: Call, _workspace: Workspace, _event: HookEvent) -> Handled:
    """Accept a call of the model that follows no prompt: one comes after each tool."""
    return None, HookAnswer(reason="no prompt came before it", is_kept=False)


HANDLERS: dict[str, Callable[[Call, Workspace, HookEvent], Handled]] = {
    "UserPromptSubmit": _prompt,
    "SessionStart": _session_start,
    "PreToolUse": _before_tool,
    "PostToolUse": _after_tool,
    "PostToolUseFailure": _after_tool,
    "Stop": _stop,
    "SubagentStart": _subagent_start,
    "SubagentStop": _subagent_stop,
    "PreInvocation": _skip,
    "PreCompact": _flush,
    "SessionEnd": _end,
}


def _session(call: Call, event: HookEvent) -> AgentSession:
    return identify_session(event.session_id, event.agent_id, event.cwd, call.caller.person_id)


OF_PERSON = frozenset({"SessionStart", "UserPromptSubmit"})
OF_TOOL = frozenset({"PreToolUse", "PostToolUse", "PostToolUseFailure"})


def locate_event(call: Call, event: HookEvent, host: str) -> HookEvent:
    """Return an event with its folder: a tool runs in the agent's, all else belongs to that of the person."""
    if not event.session_id or event.agent_id:
        return event
    session = (call.caller.person_id or "", host, event.session_id)
    folder = call.container.person_folders.find(session, event.cwd, event.roots, is_of_person=event.name in OF_PERSON)
    return event if event.name in OF_TOOL else replace(event, cwd=folder)
