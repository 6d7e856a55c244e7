"""List and read the sessions of agents: their names, turns, hook runs, actions and memories.

The log of hook runs contains each hook event and tool call, and what the agent was shown, or why nothing was shown.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

from pipeline.features.memories.usecases import get_memory
from pipeline.kernel.errors import NotFound
from pipeline.kernel.records import Filter, Memory, Page, page_of
from pipeline.kernel.records.hooks import HookAnswer
from pipeline.kernel.records.people import caller_of, owner_of
from pipeline.kernel.store import agent_sessions, conclusions, hook_runs, memories, subagents, tables, turns
from pipeline.kernel.store.hook_runs import HookRun
from pipeline.kernel.store.operations import Operations
from pipeline.kernel.times import utc_now, utc_text_at
from pipeline.kernel.workspace import Workspace, find_home
from pipeline.recall.feedback import FeedbackWriter

PROMPT_EVENT = "UserPromptSubmit"
# A host's log may date a prompt before its event.
EARLIEST_S = 2.0
# Sorts after every time as text.
END = ":"
TOLD, QUIET, FAILED, LATE = "told", "quiet", "failed", "late"


class HookRunLog:
    """Record hook runs in the background, and list them."""

    def __init__(self, operations: Operations, feedback: FeedbackWriter, workspace: Callable[[str], Workspace]) -> None:
        self._operations = operations
        self._feedback = feedback
        self._workspace = workspace

    def record(self, run: hook_runs.HookRun) -> None:
        """Record a run without waiting for the write."""
        self._feedback.submit_logged("hook-runs", run.workspace, lambda: self._add(run))

    def page(
        self,
        limit: int,
        before: int | None,
        workspace: str | None = None,
        session_id: str | None = None,
        person_id: str | None = None,
    ) -> Page[hook_runs.HookRun]:
        """List a person's runs, the latest first; of one workspace or session, or of all."""
        self._feedback.flush()
        with self._operations.tables.read() as db:
            page = hook_runs.page(db, limit + 1, before, workspace, session_id, person_id)
        return page_of(page, limit, lambda run: run.seq)

    def get(self, run_id: str, person_id: str | None = None) -> hook_runs.HookRun:
        """Return a person's run with its text; raise NotFound if there is no such run."""
        run = None
        if run_id.isdecimal() and len(run_id) <= 18:
            self._feedback.flush()
            with self._operations.tables.read() as db:
                run = hook_runs.get(db, int(run_id))
        if run is None or owner_of(run.session_id) != person_id:
            raise NotFound("no such run; runs are kept for two weeks")
        return run

    def find_prompt(self, run: hook_runs.HookRun) -> str | None:
        """Return the stored message that a run answered: the person's first one before the next prompt.

        Nothing is returned for another event, and for a prompt that is not stored, not yet, or not any more.
        """
        workspace = self._workspace(run.workspace).of(caller_of(owner_of(run.session_id)))
        if run.event != PROMPT_EVENT or run.session_id is None or not workspace.exists:
            return None
        with self._operations.tables.read() as db:
            following = hook_runs.find_next(db, run)
        until = END if following is None else _begin_of(following)
        with workspace.database.read() as db:
            turn = turns.find_first_of_person(db, run.session_id, _begin_of(run), until)
        return None if turn is None else turn.content

    def _add(self, run: hook_runs.HookRun) -> None:
        # A host chooses session names freely, so they may contain secrets.
        session_id = None if run.session_id is None else self._operations.redact(run.session_id)
        with self._operations.tables.write() as db:
            hook_runs.add(db, replace(run, session_id=session_id))
        # A purge that ran before this write could not find the run.
        workspace = self._workspace(run.workspace).of(caller_of(owner_of(run.session_id)))
        gone = [memory_id for memory_id in run.memory_ids if not _is_there(workspace, memory_id)]
        if gone:
            with self._operations.tables.write() as db:
                tables.erase_outside(db, gone, tables=hook_runs.TABLES)


def _begin_of(run: hook_runs.HookRun) -> str:
    return utc_text_at(run.at - run.took_ms / 1000 - EARLIEST_S)


def _is_there(workspace: Workspace, memory_id: str) -> bool:
    try:
        get_memory(find_home(workspace, memory_id), memory_id)
    except NotFound:
        return False
    return True


def describe_run(
    event: str, host: str, origin: tuple[str, str | None], began: float, answer: HookAnswer
) -> hook_runs.HookRun:
    """Return the run of an answered event; `origin` is its workspace and session, `began` a `perf_counter` value."""
    outcome = LATE if answer.is_late else TOLD if answer.text else QUIET
    return hook_runs.HookRun(
        time.time(),
        event,
        host,
        *origin,
        round((time.perf_counter() - began) * 1000, 2),
        outcome,
        tuple(memory.id for memory in answer.memories),
        answer.reason,
        answer.text or "",
        {hook_runs.LEFT_OUT: list(map(asdict, answer.left_out))},
    )


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """A session with a page of its turns and its latest hook runs, actions and memories, each list newest first.

    `concluded` starts with the most important conclusion. `next_cursor` is the start of the next page of turns.
    `subagents` are the sessions of the subagents that it started. Their actions are those of the session.
    """

    session: agent_sessions.SessionSummary
    said: Sequence[turns.Turn]
    told: Sequence[HookRun]
    did: Sequence[agent_sessions.JournalRow]
    learnt: Sequence[Memory]
    concluded: Sequence[conclusions.Conclusion] = ()
    next_cursor: int | None = None
    subagents: Sequence[str] = ()


def list_sessions(workspace: Workspace, limit: int, skipped: int) -> Page[agent_sessions.SessionSummary]:
    """List sessions by their last activity, the latest first, after skipping some."""
    with workspace.database.read() as db:
        sessions = agent_sessions.list_sessions(db, limit + 1, skipped, workspace.person_id)
    return Page(sessions[:limit], skipped + limit if len(sessions) > limit else None)


def read_session(
    workspace: Workspace, runs: HookRunLog, session_id: str, limit: int, before: int | None = None
) -> SessionRecord:
    """Return a session with its latest records, and turns below a row number; raise NotFound if it does not exist."""
    with workspace.database.read() as db:
        summary = agent_sessions.find_session(db, session_id)
        said = page_of(turns.page(db, session_id, limit + 1, before), limit, lambda turn: turn.seq)
        concluded = conclusions.list_of_sessions(db, [session_id])
        parent = None if summary is None else summary.parent
        agent_id = None if parent is None else subagents.find_agent(session_id, parent)
        did = agent_sessions.page_actions(db, parent or session_id, limit, None, agent_id=agent_id)
        spawned = subagents.list_subagents(db, session_id)
        learnt = memories.page(db, Filter(session_id=session_id, viewer=workspace.onlooker), limit, None)
    hook_runs = runs.page(limit, None, workspace.id, session_id, workspace.person_id).items
    if summary is None:
        raise NotFound("There is no session with this id. `reverie sessions` lists them.")
    return SessionRecord(summary, said.items, hook_runs, did, learnt, concluded, said.next_cursor, spawned)


def rename_session(workspace: Workspace, session_id: str, name: str) -> agent_sessions.SessionSummary:
    """Rename a session; raise NotFound if there is no such session."""
    with workspace.database.write() as db:
        if agent_sessions.find_session(db, session_id) is not None:
            agent_sessions.rename_session(db, session_id, name, utc_now())
        session = agent_sessions.find_session(db, session_id)
    if session is None:
        raise NotFound("There is no session with this id. `reverie sessions` lists them.")
    return session


def list_actions(
    workspace: Workspace, session_id: str | None, limit: int, before: int | None
) -> Page[agent_sessions.JournalRow]:
    """List the actions of agents in one session or in all, newest first."""
    with workspace.database.read() as db:
        actions = agent_sessions.page_actions(db, session_id, limit + 1, before, workspace.person_id)
    return page_of(actions, limit, lambda row: row.seq)
