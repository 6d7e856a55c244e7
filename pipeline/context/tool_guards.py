"""Guard tool calls by the critical lessons of the session's project and of the other projects whose files they name."""

import os.path
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Protocol

from config.settings import SETTINGS
from pipeline.context.lesson_guard import (
    AllowedCalls,
    RefusedCalls,
    ToolCall,
    ToolGuard,
    decide,
    list_critical,
    merge_guards,
)
from pipeline.errors import InvalidField
from pipeline.identity.repository import root_of_folder
from pipeline.records.hooks import AgentSession
from pipeline.store.agent_sessions import ActionType
from pipeline.store.impressions import Impression
from pipeline.text.command_lines import Invocation, list_invocations
from pipeline.workspace import Workspace
from pipeline.write.tool_actions import GuardedCall, ToolTarget, list_guarded_calls

# A project, and the session as it reads there.
Project = tuple[Workspace, AgentSession]
FindProject = Callable[[str], Project]
# Maximum number of folders of a call, and length of a path.
MOST_FOLDERS = 8
LONGEST_PATH = 1000
# Options of programs that change the folder first.
_FOLDER_OPTIONS = frozenset({"-C", "--directory", "--cwd", "--prefix", "--work-tree"})


class ImpressionWriter(Protocol):
    """Record which lessons were shown."""

    def flush(self) -> object:
        """Write the pending records."""

    def record_impressions(self, workspace: Workspace, impressions: Sequence[Impression]) -> object:
        """Record which lessons were shown."""


class ToolGuards:
    """Decide about tool calls before they run."""

    def __init__(self, feedback: ImpressionWriter, is_incognito: Callable[[Workspace, AgentSession], bool]) -> None:
        self._feedback = feedback
        self._is_incognito = is_incognito
        self._refused = RefusedCalls()
        self._allowed = AllowedCalls()

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
            if guard.decision == "ask" and can_ask and (is_other or not workspace.keeps_journal):
                for call in calls:
                    self._allowed.note_asked(project[0].id, session, tool, call.arguments, guard)
            self._feedback.record_impressions(project[0], guard.impressions)
            guards.append(guard)
        merged = merge_guards(guards)
        if merged is not None and merged.decision == "ask" and not can_ask:
            return self._refused.refuse_once(workspace.id, session, [call.target for call in calls], merged)
        return merged

    def note_made(self, session: AgentSession, tool: str, arguments: Mapping[str, Any]) -> None:
        """Record that a call succeeded."""
        self._allowed.note_made(session, tool, arguments)

    def _guard_in_project(
        self, project: Project, caller: AgentSession, tool: str, calls: Sequence[GuardedCall]
    ) -> ToolGuard | None:
        workspace, session = project
        most = workspace.settings.lesson_guard if workspace.settings.enabled else "off"
        if most == "off" or not workspace.exists or self._is_incognito(workspace, session):
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
                allowed = self._allowed.find(workspace.id, caller, tool, call.arguments)
                made = ToolCall(call.target, tool, call.arguments, allowed)
                guard = decide(db, session, left, made, most, datetime.now(UTC))
                guards += [] if guard is None else [guard]
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
