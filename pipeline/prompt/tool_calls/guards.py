"""Guard tool calls by the critical lessons of the session's project and of the other projects whose files they name."""

import os.path
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice, pairwise
from pathlib import Path
from sqlite3 import Connection
from typing import Any, Literal, Protocol

from config.settings import SETTINGS
from pipeline.features.lessons.advice import LOOKED_AT
from pipeline.kernel.errors import InvalidField, ReverieError
from pipeline.kernel.git.repository import branch_of_folder, root_of_folder
from pipeline.kernel.lru import LruCache
from pipeline.kernel.records import HEADER, Memory
from pipeline.kernel.records.hooks import AgentSession
from pipeline.kernel.store import agent_sessions, impressions
from pipeline.kernel.store.agent_sessions import Action, ActionType
from pipeline.kernel.store.impressions import Impression, make_impressions
from pipeline.kernel.workspace import Workspace
from pipeline.prompt.render import Entry, drop_dead, is_critical, is_rule, render_line
from pipeline.prompt.tool_calls.turn import concerns, forbids
from pipeline.recall.annotations import drop_superseded
from pipeline.text.command_lines import Invocation, list_invocations
from pipeline.write.fields import Severity
from pipeline.write.tool_actions import (
    READ_CHARS,
    UNREADABLE,
    GuardedCall,
    ToolTarget,
    list_guarded_calls,
    recognize_action,
)

MOST_LESSONS = 3
# Maximum number of remembered calls that the user was asked about; for a forgotten call, the user is asked again.
MOST_ASKED = 256
# Maximum number of remembered refusals; a forgotten call may be refused again.
MOST_REFUSED = 256
REFUSED_ONCE = "Refused once because of this. Ask your user; if it is right anyway, do it again."
READ_IN_PART = "Only a part of this call could be read. Check these rules before it runs."
# A project, and the session as it reads there.
Project = tuple[Workspace, AgentSession]
FindProject = Callable[[str], Project]
# Maximum number of folders of a call, and length of a path.
MOST_FOLDERS = 8
LONGEST_PATH = 1000
# Options of programs that change the folder first.
_FOLDER_OPTIONS = frozenset({"-C", "--directory", "--cwd", "--prefix", "--work-tree"})

Decision = Literal["ask", "deny"]


@dataclass(frozen=True, slots=True)
class ToolGuard:
    """The decision about a tool call and its reason: the lessons against it, and their impressions."""

    decision: Decision
    reason: str
    shown: tuple[Memory, ...]
    impressions: tuple[Impression, ...]


def _name_call(session: AgentSession, tool: str, arguments: Mapping[str, Any]) -> Hashable:
    """Return the key of a call in its session, None for a call that is not recognized."""
    action = _recognize(session, tool, arguments)
    return None if action is None else (session.id, action.type, action.target)


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


def _has_succeeded_after(db: Connection, lesson: Memory, action: Action | None) -> bool:
    """Return whether a call already succeeded in its session after a lesson was shown there."""
    since = None if action is None else impressions.find_first_shown(db, action.session_id, lesson.seq)
    return action is not None and since is not None and agent_sessions.has_succeeded_before(db, action, since)


def _recognize(session: AgentSession, tool: str, arguments: Mapping[str, Any]) -> Action | None:
    if session.id is None:
        return None
    return recognize_action(session.id, session.agent_id, "", tool, arguments, ok=True, cwd=session.cwd)


def _make_guard(
    db: Connection, session: AgentSession, lessons: Sequence[Memory], decision: Decision, target: ToolTarget
) -> ToolGuard:
    # A lesson that was shown before and has no answer keeps its impression.
    unanswered = [] if session.id is None else impressions.list_unanswered(db, session.id)
    known = {impression.memory_seq: impression for impression in unanswered if impression.agent_id == session.agent_id}
    made = [
        known.get(impression.memory_seq, impression)
        for impression in make_impressions(lessons, session.id, session.agent_id)
    ]
    now = datetime.now(UTC)
    lines = [
        *([] if _is_read_whole(target) else [READ_IN_PART]),
        HEADER,
        *(
            render_line(Entry(lesson, impression_id=impression.id), now)
            for lesson, impression in zip(lessons, made, strict=True)
        ),
    ]
    return ToolGuard(decision, "\n".join(lines), tuple(lessons), tuple(made))


class ImpressionWriter(Protocol):
    """Record which lessons were shown."""

    def flush(self) -> object:
        """Write the pending records."""

    def record_impressions(self, workspace: Workspace, impressions: Sequence[Impression]) -> object:
        """Record which lessons were shown."""


class ToolGuards:
    """Decide about tool calls before they run."""

    def __init__(self, feedback: ImpressionWriter, is_incognito: Callable[[Workspace, str | None], bool]) -> None:
        self._feedback = feedback
        self._is_incognito = is_incognito
        # In this process, the calls that were refused because their host cannot ask its user.
        self._refused: LruCache[Hashable, ToolGuard] = LruCache(MOST_REFUSED)
        # The calls that the user was asked about, which no journal may record: by lesson and its workspace, whether
        # the call was made after the lesson was shown.
        self._asked: LruCache[Hashable, dict[tuple[str, int], bool]] = LruCache(MOST_ASKED)

    def guard(
        self,
        workspace: Workspace,
        session: AgentSession,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        is_whole: bool = True,
        can_ask: bool = True,
        find_project: FindProject | None = None,
    ) -> ToolGuard | None:
        """Return the critical lessons against a tool call that name its target, even if they were shown before.

        Other lessons appear at prompts and session starts: an agent reads text from before a call after its result.
        If a host cannot ask its user, the call is refused once. `is_whole` is false for a call that was read in part.
        `find_project` returns the project of a folder.
        """
        calls = list_guarded_calls(tool, arguments, is_whole=is_whole)
        if not calls:
            return None
        guards: list[ToolGuard] = []
        for project in _list_projects((workspace, session), calls, find_project):
            is_other = project[0] is not workspace
            if (guard := self._guard_in_project(project, session, tool, calls)) is None:
                continue
            if guard.decision == "ask" and can_ask and (is_other or not workspace.access.keeps_journal):
                lessons = dict.fromkeys(((project[0].id, lesson.seq) for lesson in guard.shown), False)
                for key in filter(None, (_name_call(session, tool, call.arguments) for call in calls)):
                    self._asked.get(key, lambda _known: True, dict).update(lessons)
            self._feedback.record_impressions(project[0], guard.impressions)
            guards.append(guard)
        merged = merge_guards(guards)
        if merged is not None and merged.decision == "ask" and not can_ask:
            targets, lessons_shown = tuple(call.target for call in calls), tuple(lesson.seq for lesson in merged.shown)
            key = workspace.id, session.id, session.agent_id, targets, lessons_shown
            refusal = replace(merged, decision="deny", reason=f"{merged.reason}\n{REFUSED_ONCE}")
            # The cache returns the same refusal only for the first call.
            return refusal if self._refused.get(key, lambda _guard: True, lambda: refusal) is refusal else None
        return merged

    def note_made(self, session: AgentSession, tool: str, arguments: Mapping[str, Any]) -> None:
        """Record that a call succeeded."""
        asked = self._get_asked(session, tool, arguments)
        asked.update(dict.fromkeys(asked, True))

    def _get_asked(self, session: AgentSession, tool: str, arguments: Mapping[str, Any]) -> dict[tuple[str, int], bool]:
        """Return the lessons after which the user was asked about a call, and whether it was made."""
        # A call is read only if there was a question.
        key = _name_call(session, tool, arguments) if self._asked.values() else None
        return self._asked.find(key, lambda _known: True) or {}

    def _guard_in_project(
        self, project: Project, caller: AgentSession, tool: str, calls: Sequence[GuardedCall]
    ) -> ToolGuard | None:
        workspace, session = project
        most = workspace.settings.lesson_guard if workspace.access.is_enabled else "off"
        if most == "off" or not workspace.exists or self._is_incognito(workspace, session.id):
            return None
        with workspace.database.read() as db:
            found = [(call, list_critical(db, session, call.target)) for call in calls]
        if not any(lessons for _, lessons in found):
            return None
        # Write pending records first: they may answer the lesson.
        self._feedback.flush()
        guards: list[ToolGuard] = []
        with workspace.database.read() as db:
            for call, lessons in found:
                shown = {lesson.seq for guard in guards for lesson in guard.shown}
                left = [lesson for lesson in lessons if lesson.seq not in shown]
                # Only a call that a lesson clearly forbids is refused.
                forbidding = [lesson for lesson in left if most == "deny" and forbids(lesson, call.target)]
                if not forbidding:
                    # A person who allowed the call has seen the lesson.
                    asked = self._get_asked(caller, tool, call.arguments)
                    action = _recognize(session, tool, call.arguments)
                    left = [
                        lesson
                        for lesson in left
                        if not asked.get((workspace.id, lesson.seq)) and not _has_succeeded_after(db, lesson, action)
                    ]
                if against := (forbidding or left)[:MOST_LESSONS]:
                    guards.append(_make_guard(db, session, against, "deny" if forbidding else "ask", call.target))
        return merge_guards(guards)


def _list_projects(
    project: Project, calls: Sequence[GuardedCall], find_project: FindProject | None
) -> Iterator[Project]:
    """Yield the project of a session, and the other known projects whose files its call names."""
    yield project
    if find_project is None:
        return
    # Folders outside of any project share the default workspace.
    known = {project[0].id, SETTINGS["workspace"].default}
    cwd = project[1].cwd
    roots = {_find_root(cwd)} if cwd else set()
    for folder in list_named_folders([call.target for call in calls], cwd):
        root = _find_root(folder)
        if root is None or root in roots:
            continue
        roots.add(root)
        other = find_project(str(root))
        if other[0].id not in known:
            known.add(other[0].id)
            yield other


def _find_root(folder: str) -> Path | None:
    """Return the root of the repository around a folder, else the folder; None for a folder that cannot be read."""
    try:
        return root_of_folder(Path(folder)) or Path(folder)
    except InvalidField:
        return None


def list_named_folders(targets: Sequence[ToolTarget], cwd: str) -> list[str]:
    """Return the absolute folders of the files that a call names, and those that its commands run in."""
    found = (folder for target in targets for folder in _list_folders(target, cwd))
    return list(islice(dict.fromkeys(folder for folder in found if Path(folder).is_absolute()), MOST_FOLDERS))


def _list_folders(target: ToolTarget, cwd: str) -> Iterator[str]:
    if target.type is ActionType.EDIT:
        yield str(Path(_join(cwd, target.target)).parent)
        return
    for invocation in list_invocations(target.target):
        if not invocation.is_wrapper:
            yield from _list_folders_of_command(invocation, cwd)


def _list_folders_of_command(invocation: Invocation, cwd: str) -> Iterator[str]:
    base = cwd
    for folder in invocation.folders:
        base = base if folder.startswith("-") else _join(base, folder)
    options = [word.partition("=")[::2] for word in invocation.words if "=" in word]
    for option, value in [*pairwise(invocation.words), *options]:
        if option in _FOLDER_OPTIONS:
            base = _join(base, value)
    if base != cwd:
        yield base
    for word in (*invocation.words[1:], *invocation.files):
        path = word.partition("=")[2] if word.startswith("--") else word
        if "/" in path and "://" not in path and len(path) <= LONGEST_PATH and not any(map(str.isspace, path)):
            full = _join(base, path)
            yield full if os.path.isdir(full) else str(Path(full).parent)  # noqa: PTH112 - answers for every path


def _join(folder: str, path: str) -> str:
    expanded = os.path.expanduser(path.replace("\0", ""))  # noqa: PTH111 - Path.expanduser raises for unknown users
    # A parent folder in a path need not exist.
    return os.path.normpath(Path(folder, expanded))
