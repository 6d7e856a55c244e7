"""Brief a subagent when it starts, and record what it concludes as a session of its own."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from pipeline.kernel.lru import LruCache
from pipeline.kernel.records import OWNED, Memory
from pipeline.kernel.records.hooks import AgentSession, HookAnswer
from pipeline.kernel.store import agent_sessions, subagents
from pipeline.kernel.store.turns import Role
from pipeline.kernel.times import utc_now
from pipeline.kernel.workspace import Workspace, is_any_incognito
from pipeline.prompt.briefing import find_readable, hook_recall_budget_ms
from pipeline.prompt.render import version_of
from pipeline.prompt.subagents.brief import LONGEST_TASK, compose_subagent_brief, needs_brief
from pipeline.recall.contexts import SearchContexts
from pipeline.recall.feedback import FeedbackWriter
from pipeline.sessions.folders import find_refusal
from pipeline.sessions.intake import SessionReading, store_part
from pipeline.sessions.orders.said_text import name_session
from pipeline.sessions.prepare import PartPreparer
from pipeline.sessions.readers.reader import Said, SessionHead, SessionPart
from pipeline.text.normalize import shorten
from pipeline.text.redaction import redact

# The tools that start subagents, and the role of a call that names none.
SPAWNING = frozenset({"Agent", "Task"})
USUAL_ROLE = "general-purpose"
# The setting that names roles without briefs: all of them.
ALL_ROLES = "*"
MOST_TURNS, MOST_WAITING = 256, 16
MOST_STARTED = 1024
# The calls that start subagents of one role are in order within a session and a prompt of it.
_Key = tuple[str, str, str]
# The start of a task that is stored.
TASK_CHARS = 1000

IS_OFF, NO_BRIEF = "briefs are off for this role", "this role needs no brief"
NO_TASK, NOTHING_ABOUT = "the task is unknown", "nothing is about the task"


@dataclass(frozen=True, slots=True)
class Subagent:
    """A subagent: its role, and its session, which names it."""

    session: AgentSession
    role: str

    @property
    def session_id(self) -> str | None:
        """Return the id of its own session."""
        if self.session.id is None or self.session.agent_id is None:
            return None
        return subagents.name_subagent_session(self.session.id, self.session.agent_id)


@dataclass(frozen=True, slots=True)
class Spawn:
    """A call that starts a subagent: its prompt's id, its own id, and the role and the task of the subagent."""

    turn: str
    call_id: str
    role: str
    task: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a subagent of a host reported at its end; `at` is its time, None for now."""

    host: str
    text: str
    at: str | None = None


class SubagentService:
    """Brief subagents and record them.

    The event of a start does not contain the task; the call of the tool before it does. Calls of the same turn and role
    start their subagents in order.
    """

    def __init__(
        self,
        contexts: SearchContexts,
        feedback: FeedbackWriter,
        is_off_the_record: Callable[[Workspace, str | None], bool],
    ) -> None:
        self._contexts = contexts
        self._feedback = feedback
        self._is_off_the_record = is_off_the_record
        self._lock = threading.Lock()
        self._waiting: LruCache[_Key, deque[Spawn]] = LruCache(MOST_TURNS)
        self._started: LruCache[str, str] = LruCache(MOST_STARTED)

    def note_task(self, workspace: Workspace, session: AgentSession, spawn: Spawn) -> None:
        """Note the task of a subagent that is about to start, if its brief or its record needs the task."""
        if session.id is None or not spawn.task.strip() or self._is_off_the_record(workspace, session.id):
            return
        if _gets_briefs(workspace, spawn.role or USUAL_ROLE) or workspace.access.captures:
            spawn = replace(spawn, task=spawn.task[:LONGEST_TASK])
            with self._lock:
                self._waiting.get(
                    _key_of(session, spawn.turn, spawn.role), lambda _known: True, lambda: deque(maxlen=MOST_WAITING)
                ).append(spawn)

    def discard_task(self, session: AgentSession, spawn: Spawn) -> None:
        """Forget the task of a call that failed before its subagent started."""
        with self._lock:
            waiting = self._waiting.peek(_key_of(session, spawn.turn, spawn.role)) or deque()
            for noted in [noted for noted in waiting if noted.call_id == spawn.call_id]:
                waiting.remove(noted)

    def start(self, workspace: Workspace, subagent: Subagent, turn: str) -> HookAnswer:
        """Return the brief of a subagent that starts."""
        session, role = subagent.session, subagent.role or USUAL_ROLE
        task = self._take_task(_key_of(session, turn, role))
        if task and subagent.session_id is not None:
            self._started.put(subagent.session_id, task)
        if not _gets_briefs(workspace, role):
            return HookAnswer(reason=IS_OFF)
        if self._is_off_the_record(workspace, session.id):
            return HookAnswer(reason="the session or the workspace is incognito", is_kept=False)
        if not needs_brief(role, task):
            return HookAnswer(reason=NO_BRIEF)
        if not task:
            return HookAnswer(reason=NO_TASK)
        readable, budget_ms = find_readable(workspace, self._contexts), hook_recall_budget_ms(workspace.settings)
        brief = compose_subagent_brief(readable, session, task, budget_ms, datetime.now(UTC))
        if brief is None:
            return HookAnswer(reason=NOTHING_ABOUT)
        self._feedback.record_impressions(workspace, brief.impressions)
        self._note_seen(workspace, session, brief.shown)
        self._note_seen(workspace.person, session, brief.person_shown)
        return HookAnswer(brief.text, (*brief.shown, *brief.person_shown))

    def stop(
        self, workspace: Workspace, subagent: Subagent, report: Report, create: Callable[[], Workspace]
    ) -> HookAnswer:
        """Record the task and the report of a subagent that stops; its host gives the report to its parent."""
        session_id = subagent.session_id
        if session_id is None or not (subagent.role and report.text.strip()):
            return HookAnswer(reason="it says nothing")
        task = self._started.peek(session_id) or ""
        record = partial(self._record, workspace, subagent, task, report, create)
        self._feedback.submit_logged("hooks", workspace.id, record)
        return HookAnswer(reason="noted")

    def _record(
        self,
        workspace: Workspace,
        subagent: Subagent,
        task: str,
        report: Report,
        create: Callable[[], Workspace],
    ) -> None:
        session, session_id = subagent.session, subagent.session_id
        assert session.id is not None
        assert session_id is not None
        access = workspace.access
        if access.is_silent or not access.is_enabled or not access.captures:
            return
        if is_any_incognito(workspace, [session.id]) or self._is_off_the_record(workspace, session.id):
            return
        owner = create()
        if find_refusal(owner) is not None:
            return
        begin = f"Task of a subagent ({subagent.role}): {shorten(' '.join(task.split()), TASK_CHARS)}" if task else ""
        entries = tuple(Said(Role.ASSISTANT, text) for text in (begin, report.text) if text)
        # The name of a person's session has the person in front, which no transcript may name.
        head = SessionHead(report.host, session_id.replace(OWNED, "/"), session.cwd)
        prepared = PartPreparer(workspace.person_id).prepare(SessionPart(head, entries, ""))
        part = replace(prepared, session=replace(prepared.session, id=session_id))
        at = report.at or utc_now()
        reading = SessionReading(at, resumes=False, has_file=False, is_import=False)
        with owner.create().write() as db:
            if store_part(db, part, reading, with_actions=False).turns:
                name = f"{subagent.role}: {name_session(task)}" if task else subagent.role
                subagents.link_subagent(db, session_id, session.id, "", redact(name).text, at)

    def _take_task(self, key: _Key) -> str:
        with self._lock:
            waiting = self._waiting.peek(key)
            return waiting.popleft().task if waiting else ""

    def _note_seen(self, workspace: Workspace, session: AgentSession, shown: Sequence[Memory]) -> None:
        if session.id is None or not (shown and workspace.exists and workspace.access.notes_sessions):
            return
        versions = [(memory.seq, version_of(memory)) for memory in shown]
        self._feedback.submit_logged(
            "hooks", workspace.id, partial(_record_seen, workspace, session.id, session.agent_id or "", versions)
        )


def _key_of(session: AgentSession, turn: str, role: str) -> _Key:
    return session.id or "", turn, role or USUAL_ROLE


def _gets_briefs(workspace: Workspace, role: str) -> bool:
    roles_off = {name.casefold() for name in workspace.settings.no_brief_roles.replace(",", " ").split()}
    return workspace.access.recalls and not roles_off & {ALL_ROLES, role.casefold()}


def _record_seen(workspace: Workspace, session_id: str, agent_id: str, versions: Sequence[tuple[int, str]]) -> None:
    with workspace.database.write() as db:
        agent_sessions.record_seen(db, session_id, agent_id, versions)
