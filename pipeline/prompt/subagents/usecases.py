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
        self._waiting: LruCache[tuple[str, str, str], deque[str]] = LruCache(MOST_TURNS)
        self._started: LruCache[str, str] = LruCache(MOST_STARTED)

    def note_task(self, session: AgentSession, turn: str, role: str, task: str) -> None:
        """Note the task of a subagent that is about to start."""
        if session.id is not None and task.strip():
            key = session.id, turn, role or USUAL_ROLE
            with self._lock:
                self._waiting.get(key, lambda _known: True, lambda: deque(maxlen=MOST_WAITING)).append(
                    task[:LONGEST_TASK]
                )

    def start(self, workspace: Workspace, subagent: Subagent, turn: str) -> HookAnswer:
        """Return the brief of a subagent that starts."""
        session, role, settings = subagent.session, subagent.role or USUAL_ROLE, workspace.settings
        task = self._take_task((session.id or "", turn, role))
        if task and subagent.session_id is not None:
            self._started.put(subagent.session_id, task)
        roles_off = {name.casefold() for name in settings.no_brief_roles.replace(",", " ").split()}
        if not workspace.access.recalls or roles_off & {ALL_ROLES, role.casefold()}:
            return HookAnswer(reason=IS_OFF)
        if self._is_off_the_record(workspace, session.id):
            return HookAnswer(reason="the session or the workspace is incognito", is_kept=False)
        if not needs_brief(role, task):
            return HookAnswer(reason=NO_BRIEF)
        if not task:
            return HookAnswer(reason=NO_TASK)
        readable = find_readable(workspace, self._contexts)
        brief = compose_subagent_brief(readable, session, task, hook_recall_budget_ms(settings), datetime.now(UTC))
        if brief is None:
            return HookAnswer(reason=NOTHING_ABOUT)
        self._feedback.record_impressions(workspace, brief.impressions)
        self._note_seen(workspace, session, brief.shown)
        self._note_seen(workspace.person, session, brief.person_shown)
        return HookAnswer(brief.text, (*brief.shown, *brief.person_shown))

    def stop(
        self, workspace: Workspace, subagent: Subagent, host: str, report: str, create: Callable[[], Workspace]
    ) -> HookAnswer:
        """Record the task and the report of a subagent that stops; its host gives the report to its parent."""
        session_id = subagent.session_id
        if session_id is None or not (subagent.role and report.strip()):
            return HookAnswer(reason="it says nothing")
        task = self._started.peek(session_id) or ""
        record = partial(self._record, workspace, subagent, host, (task, report), create)
        self._feedback.submit_logged("hooks", workspace.id, record)
        return HookAnswer(reason="noted")

    def _record(
        self,
        workspace: Workspace,
        subagent: Subagent,
        host: str,
        said: tuple[str, str],
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
        task, report = said
        begin = f"Task of a subagent ({subagent.role}): {shorten(' '.join(task.split()), TASK_CHARS)}" if task else ""
        entries = tuple(Said(Role.ASSISTANT, text) for text in (begin, report) if text)
        # The name of a person's session has the person in front, which no transcript may name.
        head = SessionHead(host, session_id.replace(OWNED, "/"), session.cwd)
        prepared = PartPreparer(workspace.person_id).prepare(SessionPart(head, entries, ""))
        part = replace(prepared, session=replace(prepared.session, id=session_id))
        now = utc_now()
        reading = SessionReading(now, resumes=False, has_file=False, is_import=False)
        with owner.create().write() as db:
            if store_part(db, part, reading, with_actions=False).turns:
                name = f"{subagent.role}: {name_session(task)}" if task else subagent.role
                subagents.link_subagent(db, session_id, session.id, "", redact(name).text, now)

    def _take_task(self, key: tuple[str, str, str]) -> str:
        with self._lock:
            waiting = self._waiting.peek(key)
            return waiting.popleft() if waiting else ""

    def _note_seen(self, workspace: Workspace, session: AgentSession, shown: Sequence[Memory]) -> None:
        if session.id is None or not (shown and workspace.exists and workspace.access.notes_sessions):
            return
        versions = [(memory.seq, version_of(memory)) for memory in shown]
        self._feedback.submit_logged(
            "hooks", workspace.id, partial(_record_seen, workspace, session.id, session.agent_id or "", versions)
        )


def _record_seen(workspace: Workspace, session_id: str, agent_id: str, versions: Sequence[tuple[int, str]]) -> None:
    with workspace.database.write() as db:
        agent_sessions.record_seen(db, session_id, agent_id, versions)
