"""Import the sessions that agents keep on this machine, each into the workspace of its folder.

The importing process stores what child processes read and prepare. How far a file was read is recorded after its
messages are stored: an import that is interrupted continues there, and finds what it stored without a record.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from config.process import Role, RoleInUse
from config.settings import Settings
from pipeline.kernel.errors import Conflict, NotFound, ReverieError
from pipeline.kernel.job_runs import JobRun
from pipeline.kernel.store.transcripts import FileMark, Transcripts, name_file
from pipeline.kernel.store.turns import Message, Role as SpeakerRole
from pipeline.kernel.times import utc_text_at
from pipeline.kernel.workspace import Workspace
from pipeline.sessions.folders import IN_PROJECTS, NEW_IN_PROJECT, OTHER_PROJECT, TOO_OLD, SessionFolders
from pipeline.sessions.import_progress import ROLE, ImportProgress, ProgressRecorder
from pipeline.sessions.intake import KNOWN, SessionReading, drop_read, store_part
from pipeline.sessions.job import sessions as trim_sessions
from pipeline.sessions.orders.taken_back import take_back
from pipeline.sessions.prepare import PreparedPart, split_part
from pipeline.sessions.readers.reader import READERS, Places, TranscriptFile, load_reader
from pipeline.sessions.readers.session_log import LeftOut
from pipeline.sessions.reading import FileEnd, ReadTask, read_transcripts
from pipeline.sessions.search_usecases import make_turns_searchable
from pipeline.sessions.watch import find_places
from pipeline.text.normalize import shorten

# A transaction stores about this much.
BATCH_ITEMS = 2000
BATCH_CHARS = 4_000_000
BATCH_S = 1.0
PREVIEWED_SESSIONS = 20
PREVIEWED_LINES = 3
PREVIEW_CHARS = 100


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What to import: the agents (all by default), the first time of a session, a project, and whether to store.

    `is_update` is for the worker, which imports what has changed since an import: it records no progress.
    """

    agents: tuple[str, ...] = ()
    since: str | None = None
    project: Path | None = None
    dry_run: bool = False
    is_update: bool = False

    @property
    def is_complete(self) -> bool:
        """Return whether all sessions of the agents are stored."""
        return self.since is None and self.project is None and not self.dry_run


@dataclass(slots=True)
class AgentSummary:
    """What an import stored of one agent, what it left out, by reason, and the files that are set aside as harmful."""

    files: int = 0
    unchanged: int = 0
    sessions: int = 0
    turns: int = 0
    queued: int = 0
    actions: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    set_aside: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SessionPreview:
    """The first lines of a session that would be stored."""

    agent: str
    session_id: str
    workspace: str
    started_at: str | None
    title: str | None
    lines: tuple[str, ...]


@dataclass(slots=True)
class ImportSummary:
    """The result of an import by agent; `previews` are only filled by a dry run."""

    agents: dict[str, AgentSummary] = field(default_factory=dict)
    workspaces: set[str] = field(default_factory=set)
    previews: list[SessionPreview] = field(default_factory=list)
    bytes: int = 0
    took_s: float = 0.0


OnProgress = Callable[[ImportProgress], object]


@dataclass(slots=True)
class _FileReading:
    """A file that is being read: its sessions, and whether options left a part of it out."""

    task: ReadTask
    mark: str | None
    sessions: dict[tuple[str, str], SessionReading] = field(default_factory=dict)
    is_filtered: bool = False


class SessionImport:
    """One import of sessions."""

    def __init__(
        self,
        settings: Settings,
        transcripts: Transcripts,
        workspace: Callable[[str], Workspace],
        options: ImportOptions,
        places: Places | None = None,
    ) -> None:
        self._settings = settings
        self._transcripts = transcripts
        self._workspace = workspace
        self._options = options
        self._places = places or find_places()
        self._folders = SessionFolders(settings, workspace, options.project, to_write=not options.dry_run)
        self._batch: list[tuple[_FileReading, PreparedPart, Workspace]] = []
        # What was read and is stored: the names of records, and how far the files were read.
        self._names: set[str] = set()
        self._marks: dict[str, tuple[str, FileMark]] = {}
        self._ended_sessions: set[tuple[str, str]] = set()
        self._unattended: set[tuple[str, str]] = set()
        self._previews: dict[tuple[str, str], SessionPreview] = {}
        self.summary = ImportSummary()

    def run(self, on_progress: OnProgress = lambda _progress: None) -> ImportSummary:
        """Import everything new; raise Conflict if another import is running."""
        if self._options.dry_run:
            return self._run(on_progress)
        role = Role(self._settings.paths.root, ROLE)
        self._settings.paths.ensure()
        try:
            role.take()
        except RoleInUse as error:
            raise Conflict(
                f"Cannot import sessions: {error}. Wait until it ends; `reverie status` shows its progress."
            ) from error
        try:
            return self._run(on_progress)
        finally:
            role.release()

    def list_tasks(self) -> list[ReadTask]:
        """Return the files that are new or have changed, the oldest first: forks come after what they copy."""
        tasks: list[ReadTask] = []
        for agent in self._options.agents or READERS:
            summary = self.summary.agents.setdefault(agent, AgentSummary())
            marks = self._transcripts.list_file_marks(agent)
            for file in self._discover(agent, summary):
                mark = marks.get(name_file(agent, str(file.path)), FileMark(None))
                if self._options.is_update and agent in IN_PROJECTS and mark == FileMark(None):
                    summary.left_out[NEW_IN_PROJECT] += 1
                elif mark.covers(file.size, file.modified):
                    summary.unchanged += 1
                elif self._options.since is not None and utc_text_at(file.modified) < self._options.since:
                    summary.left_out[TOO_OLD] += 1
                else:
                    tasks.append(ReadTask(file, mark.mark))
        return sorted(tasks, key=lambda task: (task.file.modified, str(task.file.path)))

    def _discover(self, agent: str, summary: AgentSummary) -> Iterator[TranscriptFile]:
        try:
            yield from load_reader(agent).discover(self._places)
        except OSError as error:
            summary.problems.append(f"cannot list its files ({error.strerror})")

    def _run(self, on_progress: OnProgress) -> ImportSummary:
        began = time.monotonic()
        tasks = self.list_tasks()
        size = sum(task.file.size for task in tasks)
        is_silent = self._options.dry_run or self._options.is_update
        recorder = None if is_silent else ProgressRecorder(self._transcripts, len(tasks), size)
        report = partial(self._report, recorder, on_progress)
        readings: dict[ReadTask, _FileReading] = {}
        flushed_at = time.monotonic()
        for task, item in read_transcripts(tasks, in_worker=self._options.is_update):
            reading = readings.setdefault(task, _FileReading(task, task.mark))
            if isinstance(item, FileEnd):
                self._end_file(readings.pop(task), item)
            else:
                self._take(reading, item)
            if self._is_batch_full() or time.monotonic() - flushed_at >= BATCH_S:
                self._flush()
                flushed_at = time.monotonic()
                report()
        self._flush()
        if self._options.is_complete and not self._options.is_update:
            self._transcripts.note_imported_agents(self.summary.agents)
        report(is_indexing=True)
        self._finish_workspaces()
        self.summary.previews = list(self._previews.values())
        self.summary.took_s = round(time.monotonic() - began, 2)
        report(ended_at=time.time())
        return self.summary

    def _take(self, reading: _FileReading, part: PreparedPart) -> None:
        """Add a part to the batch, each of its entries for the workspace of its folder."""
        for (workspace_id, reason), own in split_part(part, self._find_owner):
            self._take_own(reading, own, workspace_id, reason)
        reading.mark = part.mark
        if not reading.is_filtered:
            self._note_mark(reading, FileMark(part.mark))

    def _find_owner(self, folder: str) -> tuple[str | None, str]:
        """Return the id of the workspace of a folder, or None and the reason why nothing is stored."""
        workspace, reason = self._folders.find(folder)
        return None if workspace is None else workspace.id, reason

    def _take_own(self, reading: _FileReading, part: PreparedPart, workspace_id: str | None, reason: str) -> None:
        """Add what belongs to one workspace to the batch, if it is to be stored."""
        summary = self.summary.agents[reading.task.file.agent]
        if part.left_out[LeftOut.UNATTENDED]:
            # Sessions are counted, not records.
            session = (reading.task.file.agent, part.session.id)
            part.left_out[LeftOut.UNATTENDED] = int(session not in self._unattended)
            self._unattended.add(session)
        summary.left_out.update(part.left_out)
        summary.problems += part.problems
        last = max(part.times, default="")
        if self._options.since is not None and last and last < self._options.since:
            workspace_id, reason = None, TOO_OLD
        if reason in (OTHER_PROJECT, TOO_OLD):
            reading.is_filtered = True
        if workspace_id is None or not part.session.id:
            summary.left_out[reason] += len(part.messages) + len(part.actions)
        elif self._options.dry_run:
            self._preview(reading.task.file.agent, part, self._workspace(workspace_id))
        else:
            self._batch.append((reading, part, self._workspace(workspace_id)))

    def _end_file(self, reading: _FileReading, end: FileEnd) -> None:
        file = reading.task.file
        summary = self.summary.agents[file.agent]
        summary.files += 1
        self.summary.bytes += file.size
        if end.problem is not None:
            summary.problems.append(f"{file.path}: {end.problem}")
        if end.is_harmful:
            summary.set_aside.append(f"{file.path} is not read until it changes: {end.problem}.")
        if (end.problem is None or end.is_harmful) and not reading.is_filtered:
            self._note_mark(reading, FileMark(reading.mark, file.size, file.modified))

    def _note_mark(self, reading: _FileReading, mark: FileMark) -> None:
        file = reading.task.file
        self._marks[name_file(file.agent, str(file.path))] = (file.agent, mark)

    def _is_batch_full(self) -> bool:
        items = chars = 0
        for _, part, _ in self._batch:
            items += len(part.messages) + len(part.actions)
            chars += sum(len(message.content) for message in part.messages)
        return items >= BATCH_ITEMS or chars >= BATCH_CHARS or len(self._marks) >= BATCH_ITEMS

    def _flush(self) -> None:
        """Store the batch, then what was read of which files."""
        by_workspace: dict[str, list[tuple[_FileReading, PreparedPart, Workspace]]] = {}
        for entry in self._batch:
            by_workspace.setdefault(entry[2].id, []).append(entry)
        for entries in by_workspace.values():
            try:
                self._store(entries)
            except ReverieError as error:
                self._note_failure(entries, error)
        self._batch.clear()
        if not self._options.dry_run and (self._names or self._marks):
            self._transcripts.note_read(self._names, self._marks)
        self._names.clear()
        self._marks.clear()

    def _finish_workspaces(self) -> None:
        """Delete the oldest text of sessions above the storage budget, and make the rest searchable."""
        for workspace in map(self._workspace, () if self._options.dry_run else self.summary.workspaces):
            trim_sessions(JobRun(workspace.database, datetime.now(UTC)), workspace.settings.sessions_mb)
            make_turns_searchable(workspace)

    def _note_failure(
        self, entries: Sequence[tuple[_FileReading, PreparedPart, Workspace]], error: ReverieError
    ) -> None:
        """Report that a workspace cannot store its sessions; their files are read again by the next import."""
        for reading, _, workspace in entries:
            file, problem = reading.task.file, f"workspace {workspace.id}: {error}"
            reading.is_filtered = True
            self._marks.pop(name_file(file.agent, str(file.path)), None)
            problems = self.summary.agents[file.agent].problems
            if problem not in problems:
                problems.append(problem)

    def _store(self, entries: Sequence[tuple[_FileReading, PreparedPart, Workspace]]) -> None:
        workspace, names = entries[0][2], set[str]()
        self.summary.workspaces.add(workspace.id)
        parts = []
        for reading, part, _ in entries:
            own, new = drop_read(part, self._transcripts.list_known)
            self.summary.agents[reading.task.file.agent].left_out[KNOWN] += len(part.messages) - len(own.messages)
            parts.append((reading, own))
            names |= new
        with workspace.create().write() as db:
            for reading, part in parts:
                self._store_part(db, reading, part, workspace)
        for _, part in parts:
            removed = [Message(part.session.id, each.role, each.content, each.at) for each in part.taken_back]
            take_back(workspace, part.session.id, removed)
        # Their files are not read again.
        workspace.database.sync_log()
        self._names |= names

    def _store_part(self, db: Connection, reading: _FileReading, part: PreparedPart, workspace: Workspace) -> None:
        file, summary = reading.task.file, self.summary.agents[reading.task.file.agent]
        session = reading.sessions.setdefault(
            (part.session.id, workspace.id),
            SessionReading(
                part.session.started_at or utc_text_at(file.modified), resumes=reading.task.mark is not None
            ),
        )
        result = store_part(db, part, session, with_actions=workspace.access.keeps_journal)
        summary.turns += len(result.turns)
        summary.queued += result.queued
        summary.actions += result.actions
        summary.left_out.update(result.left_out)
        key = (part.session.agent, part.session.id)
        if (result.turns or result.actions) and key not in self._ended_sessions:
            self._ended_sessions.add(key)
            summary.sessions += 1

    def _report(self, recorder: ProgressRecorder | None, on_progress: OnProgress, **state: Any) -> None:
        """Report to the caller how far the import is, and record it for other processes."""
        if recorder is None:
            return
        agents = self.summary.agents
        recorder.update(
            files=sum(agent.files for agent in agents.values()),
            bytes=self.summary.bytes,
            sessions=sum(agent.sessions for agent in agents.values()),
            turns=sum(agent.turns for agent in agents.values()),
            agents={name: agent.sessions for name, agent in agents.items() if agent.sessions},
            **state,
        )
        on_progress(recorder.progress)

    def _preview(self, agent: str, part: PreparedPart, workspace: Workspace) -> None:
        """Count a part that would be stored, and keep the first lines of its session."""
        summary, key = self.summary.agents[agent], (agent, part.session.id)
        summary.turns += len(part.messages)
        summary.actions += len(part.actions) if workspace.access.keeps_journal else 0
        summary.queued += sum(message.role is SpeakerRole.USER for message in part.messages)
        self.summary.workspaces.add(workspace.id)
        if key not in self._ended_sessions and (part.messages or part.actions):
            self._ended_sessions.add(key)
            summary.sessions += 1
            if len(self._previews) < PREVIEWED_SESSIONS:
                first = [message.content for message in part.messages][:PREVIEWED_LINES]
                lines = tuple(shorten(" ".join(content.split()), PREVIEW_CHARS) for content in first)
                head = part.session
                self._previews[key] = SessionPreview(
                    head.agent, head.id, workspace.id, head.started_at, part.name, lines
                )


def import_sessions(
    settings: Settings,
    transcripts: Transcripts,
    workspace: Callable[[str], Workspace],
    options: ImportOptions | None = None,
    on_progress: OnProgress = lambda _progress: None,
    places: Places | None = None,
) -> ImportSummary:
    """Import the sessions of all or of some agents; raise Conflict if another import is running."""
    chosen = options or ImportOptions()
    if unknown := [agent for agent in chosen.agents if agent not in READERS]:
        raise NotFound(f"Reverie cannot read sessions of {', '.join(unknown)}. Choose one of: {', '.join(READERS)}.")
    return SessionImport(settings, transcripts, workspace, chosen, places).run(on_progress)
