"""Record events that waited in the spool: their agents have gone on without an answer, so nothing is recalled."""

from collections.abc import Callable, Mapping
from functools import partial
from sqlite3 import Connection
from typing import Any

from pipeline.features.capture.usecases import find_typed, run_memory_commands
from pipeline.kernel.records.hooks import AgentSession, SpooledMark
from pipeline.kernel.store import agent_sessions
from pipeline.kernel.workspace import Workspace
from pipeline.prompt.agent_events import AgentSessionService, write_note
from pipeline.recall.contexts import SearchContexts
from pipeline.recall.feedback import FeedbackWriter
from pipeline.text.normalize import normalize_id
from pipeline.text.own_words import is_host_notice
from pipeline.write.tool_actions import Outcome, describe_action, is_worth_storing


def record_spooled_prompt(
    service: AgentSessionService,
    contexts: SearchContexts,
    feedback: FeedbackWriter,
    workspace: Workspace,
    session: AgentSession,
    message: str,
    find_own: Callable[[], Workspace],
    mark: SpooledMark,
) -> None:
    """Run the memory commands in a prompt and start its turn, as when it was sent."""
    if not workspace.access.is_enabled or is_host_notice(message):
        return
    message = find_typed(workspace, message, session.cwd)
    if service.no_save.run_no_save_command(workspace, session, message, find_own) is not None:
        return
    if service.is_off_the_record(workspace, session.id):
        return
    run_memory_commands(workspace, contexts, session, message, mark)
    if session.id is not None and workspace.exists and workspace.access.notes_sessions:
        begin = partial(_begin_turn, session_id=session.id, cwd=normalize_id(session.cwd), at=mark.at)
        feedback.submit_logged("hooks", workspace.id, partial(write_note, workspace, begin))


def record_spooled_action(
    service: AgentSessionService,
    feedback: FeedbackWriter,
    workspace: Workspace,
    session: AgentSession,
    call: tuple[str, Mapping[str, Any], Outcome],
    mark: SpooledMark,
) -> None:
    """Record an action, given by its tool, arguments and outcome, once and at the time when it was made."""
    if session.id is None or not workspace.access.keeps_journal:
        return
    action = describe_action(session.id, session.agent_id, mark.at, *call, session.cwd)
    if action is not None and is_worth_storing(workspace, action):
        feedback.submit_logged("hooks", workspace.id, partial(_add_action, service, workspace, action))


def _add_action(service: AgentSessionService, workspace: Workspace, action: agent_sessions.Action) -> None:
    if service.is_off_the_record(workspace, action.session_id):
        return
    with workspace.create().write() as db:
        if not agent_sessions.has_action(db, action):
            agent_sessions.add_action(db, action)


def _begin_turn(db: Connection, session_id: str, cwd: str, at: str) -> None:
    # A later turn may have started since: its actions must not be summarized twice.
    if (agent_sessions.find_turn_start(db, session_id) or "") < at:
        agent_sessions.begin_turn(db, session_id, cwd, at)
