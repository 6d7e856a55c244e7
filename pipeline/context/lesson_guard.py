"""The guard: critical lessons that name a tool call, shown before the call runs."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from sqlite3 import Connection
from typing import Any, Literal

from pipeline.context.advice import LOOKED_AT
from pipeline.context.briefing import drop_dead
from pipeline.context.lesson_records import is_critical, is_rule
from pipeline.context.render import Entry, render_line
from pipeline.context.turn import concerns, forbids
from pipeline.errors import ReverieError
from pipeline.identity.repository import branch_of_folder
from pipeline.lru import LruCache
from pipeline.recall.annotations import drop_superseded
from pipeline.records import HEADER, Memory
from pipeline.records.hooks import AgentSession
from pipeline.store import agent_sessions, impressions
from pipeline.store.agent_sessions import Action, ActionType
from pipeline.store.impressions import Impression, make_impressions
from pipeline.write.fields import Severity
from pipeline.write.tool_actions import READ_CHARS, UNREADABLE, ToolTarget, recognize_action

MOST_LESSONS = 3
# Maximum number of remembered calls that the user was asked about; for a forgotten call, the user is asked again.
MOST_ASKED = 256
# Maximum number of remembered refusals; a forgotten call may be refused again.
MOST_REFUSED = 256
REFUSED_ONCE = "Refused once because of this. Ask your user; if it is right anyway, do it again."
READ_IN_PART = "Only a part of this call could be read. Check these rules before it runs."

Decision = Literal["ask", "deny"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call before it runs, its target, and the lessons after which the same call was made before."""

    target: ToolTarget
    tool: str
    given: Mapping[str, Any]
    allowed: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class ToolGuard:
    """The decision about a tool call and its reason: the lessons against it, and their impressions."""

    decision: Decision
    reason: str
    shown: tuple[Memory, ...]
    impressions: tuple[Impression, ...]


class AllowedCalls:
    """Remember in this process which calls the user was asked about and allowed, where no journal records them."""

    def __init__(self) -> None:
        # By lesson and its workspace, whether the call was made after the lesson was shown.
        self._asked: LruCache[Hashable, dict[tuple[str, int], bool]] = LruCache(MOST_ASKED)

    def find(self, workspace_id: str, session: AgentSession, tool: str, arguments: Mapping[str, Any]) -> frozenset[int]:
        """Return the row numbers of the lessons of a workspace after which a call was made."""
        asked = self._get(_name_call(session, tool, arguments)) if self._asked.values() else {}
        return frozenset(seq for (of, seq), was_made in asked.items() if was_made and of == workspace_id)

    def note_asked(
        self, workspace_id: str, session: AgentSession, tool: str, arguments: Mapping[str, Any], guard: ToolGuard
    ) -> None:
        """Record which lessons of a workspace were shown before a call."""
        key = _name_call(session, tool, arguments)
        if key is not None:
            self._asked.get(key, lambda _known: True, dict).update(
                dict.fromkeys(((workspace_id, lesson.seq) for lesson in guard.shown), False)
            )

    def note_made(self, session: AgentSession, tool: str, arguments: Mapping[str, Any]) -> None:
        """Record that a call succeeded."""
        if not self._asked.values():
            return
        asked = self._get(_name_call(session, tool, arguments))
        asked.update(dict.fromkeys(asked, True))

    def _get(self, key: Hashable) -> dict[tuple[str, int], bool]:
        return self._asked.get(key, lambda _known: True, dict) if self._asked.holds(key) else {}


def _name_call(session: AgentSession, tool: str, arguments: Mapping[str, Any]) -> Hashable:
    """Return the key of a call in its session, None for a call that is not recognized."""
    action = _recognize(session, tool, arguments)
    return None if action is None else (session.id, action.type, action.target)


class RefusedCalls:
    """Remember in this process which calls were refused because their host cannot ask its user."""

    def __init__(self) -> None:
        self._refused: LruCache[Hashable, ToolGuard] = LruCache(MOST_REFUSED)

    def refuse_once(
        self, workspace_id: str, session: AgentSession, targets: Sequence[ToolTarget], guard: ToolGuard
    ) -> ToolGuard | None:
        """Return a refusal instead of a question, None for a call that was refused before."""
        lessons = tuple(lesson.seq for lesson in guard.shown)
        key = (workspace_id, session.id, session.agent_id, tuple(targets), lessons)
        # The cache returns the same guard only for the first call, which is refused.
        first = self._refused.get(key, lambda _guard: True, lambda: guard)
        return replace(guard, decision="deny", reason=f"{guard.reason}\n{REFUSED_ONCE}") if first is guard else None


def list_critical(db: Connection, session: AgentSession, target: ToolTarget) -> list[Memory]:
    """List the critical lessons that name the target of a call, without those that agents never follow.

    A lesson about production does not concern a call that names only another environment.

    If there are none and only a part of the target was read, list all critical lessons: each may be about the rest.
    """
    # The details of a critical lesson contain the word.
    lessons = impressions.list_lessons_mentioning(db, session.viewer, (Severity.CRITICAL,), LOOKED_AT)
    critical = [lesson for lesson in lessons if is_rule(lesson) and is_critical(lesson)]
    branch = _find_branch(session, target) if critical else None
    ends = [replace(target, target=end) for end in dict.fromkeys((target.target, target.target[-READ_CHARS:]))]
    is_whole = _is_read_whole(target)
    named = [lesson for lesson in critical if any(concerns(lesson, end, branch, is_whole=is_whole) for end in ends)]
    chosen = named if named or is_whole else critical
    return drop_dead(db, drop_superseded(db, sorted(chosen, key=lambda lesson: (-lesson.importance, -lesson.seq))))


def _find_branch(session: AgentSession, target: ToolTarget) -> str | None:
    """Return the branch that is checked out in the folder of a session on this machine, for a command of git."""
    if target.type is ActionType.EDIT or "git" not in target.target or not session.cwd:
        return None
    try:
        return branch_of_folder(Path(session.cwd))
    except ReverieError:
        return None


def _is_read_whole(target: ToolTarget) -> bool:
    return target is not UNREADABLE and len(target.target) <= READ_CHARS


def decide(
    db: Connection, session: AgentSession, lessons: Sequence[Memory], call: ToolCall, most: Decision, now: datetime
) -> ToolGuard | None:
    """Return the guard of critical lessons against a call; refuse only calls that a lesson clearly forbids."""
    forbidding = [lesson for lesson in lessons if most == "deny" and forbids(lesson, call.target)]
    # A person who allowed the call has seen the lesson.
    left = forbidding or [
        lesson for lesson in _drop_allowed(db, session, lessons, call) if lesson.seq not in call.allowed
    ]
    if not left:
        return None
    guard = _make_guard(db, session, left[:MOST_LESSONS], "deny" if forbidding else "ask", now)
    return guard if _is_read_whole(call.target) else replace(guard, reason=f"{READ_IN_PART}\n{guard.reason}")


def merge_guards(guards: Sequence[ToolGuard]) -> ToolGuard | None:
    """Return the strictest decision of several guards, with all their lessons; None without guards."""
    if len(guards) < 2:
        return guards[0] if guards else None
    lines = dict.fromkeys(line for guard in guards for line in guard.reason.split("\n"))
    return ToolGuard(
        "deny" if any(guard.decision == "deny" for guard in guards) else "ask",
        "\n".join(lines),
        tuple(lesson for guard in guards for lesson in guard.shown),
        tuple(impression for guard in guards for impression in guard.impressions),
    )


def _drop_allowed(db: Connection, session: AgentSession, lessons: Sequence[Memory], call: ToolCall) -> list[Memory]:
    """Drop lessons after which the same call already succeeded in the session."""
    action = _recognize(session, call.tool, call.given)
    if session.id is None or action is None:
        return list(lessons)
    shown = {lesson.seq: impressions.find_first_shown(db, session.id, lesson.seq) for lesson in lessons}
    return [
        lesson
        for lesson in lessons
        if (since := shown[lesson.seq]) is None or not agent_sessions.has_succeeded_before(db, action, since)
    ]


def _recognize(session: AgentSession, tool: str, arguments: Mapping[str, Any]) -> Action | None:
    if session.id is None:
        return None
    return recognize_action(session.id, session.agent_id, "", tool, arguments, ok=True, cwd=session.cwd)


def _make_guard(
    db: Connection, session: AgentSession, lessons: Sequence[Memory], decision: Decision, now: datetime
) -> ToolGuard:
    # A lesson that was shown before and has no answer keeps its impression.
    unanswered = [] if session.id is None else impressions.list_unanswered(db, session.id)
    known = {impression.memory_seq: impression for impression in unanswered if impression.agent_id == session.agent_id}
    made = [
        known.get(impression.memory_seq, impression)
        for impression in make_impressions(lessons, session.id, session.agent_id)
    ]
    lines = [
        render_line(Entry(lesson, impression_id=impression.id), now)
        for lesson, impression in zip(lessons, made, strict=True)
    ]
    return ToolGuard(decision, "\n".join([HEADER, *lines]), tuple(lessons), tuple(made))
