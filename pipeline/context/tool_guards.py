"""Guard tool calls by the critical lessons of the session's project and of the other projects whose files they name."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
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
from pipeline.context.named_folders import list_named_folders
from pipeline.errors import InvalidField
from pipeline.identity.repository import root_of_folder
from pipeline.records.hooks import AgentSession
from pipeline.store.impressions import Impression
from pipeline.workspace import Workspace
from pipeline.write.tool_actions import GuardedCall, list_guarded_calls

# A project, and the session as it reads there.
Project = tuple[Workspace, AgentSession]
FindProject = Callable[[str], Project]


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
