"""Import the records that hosts keep of a session, each once, into the workspace of its folder."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pipeline.capture.nosave import NoSave, find_no_save
from pipeline.capture.unsaved import split_said
from pipeline.errors import InvalidField, ReverieError, UnreadableTranscript
from pipeline.lru import LruCache
from pipeline.recall.contexts import SearchContexts
from pipeline.records.hooks import AgentSession, SpooledMark
from pipeline.services.distill import distill_session
from pipeline.services.incognito import begin_incognito
from pipeline.services.session_messages import SaidRecord, SessionOrigin
from pipeline.services.taken_back import name_taken_back, take_back
from pipeline.services.turns import find_typed, obey, take_turns
from pipeline.sessions.prepare import clean_mark
from pipeline.store.transcripts import Name, Transcripts
from pipeline.store.turns import Message, Role
from pipeline.times import parse, utc_now
from pipeline.workspace import Workspace

# Returns the records after a mark, and the mark after them; None if they do not come from a file.
SaidReader = Callable[[str | None], tuple[list[SaidRecord], str | None]]


@dataclass(frozen=True, slots=True)
class SaidSource:
    """The reader of a session's records, and a function that returns the workspace of a folder."""

    read: SaidReader
    find_workspace: Callable[[str], Workspace]
    # Called when everything that was said is stored, or is not to be stored.
    note_taken: Callable[[], None] = lambda: None
    # Returns what the session continues; None if it has no file.
    read_origin: Callable[[], SessionOrigin | None] = lambda: None


# Maximum number of unreadable transcripts to remember, so that each is reported once.
MOST_REPORTED = 256
# Maximum number of sessions to remember as read.
MOST_BEGUN = 10_000

# A record, and the names by which it is known.
_Named = tuple[SaidRecord, Sequence[Name]]


class SaidRecordStore:
    """Store the records of hosts."""

    def __init__(self, transcripts: Transcripts, contexts: SearchContexts) -> None:
        self._transcripts = transcripts
        self._contexts = contexts
        self._reported: LruCache[str, bool] = LruCache(MOST_REPORTED)
        # Sessions whose file was read: a prompt waits for no reading of it.
        self._begun: set[str] = set()

    def continue_silence(
        self, workspace: Workspace, session: AgentSession, source: SaidSource, is_incognito: Callable[[str], bool]
    ) -> None:
        """Make a session incognito if it continues one in which nothing may be saved."""
        if session.id is not None and self._continues_silence(workspace, session.id, source, is_incognito):
            begin_incognito(workspace, session.id)

    def _continues_silence(
        self, workspace: Workspace, session_id: str, source: SaidSource, is_incognito: Callable[[str], bool]
    ) -> bool:
        """Return whether a session that was never read begins as a copy of one in which nothing may be saved."""
        if session_id in self._begun:
            return False
        try:
            origin = source.read_origin()
        except UnreadableTranscript:
            # Reading its messages reports it.
            return False
        if origin is None or not origin.records:
            return False
        names = [_name_record(record, workspace.person_id, session_id, in_file=True) for record in origin.records]
        with self._transcripts.reading(session_id) as reading:
            known = [] if reading.mark is not None else reading.list_known(names)
        if not known:
            self._note_begun(session_id)
            return False
        copies = [
            Message(session_id, record.role, record.content, record.at or "")
            for record, is_known in zip(origin.records, known, strict=True)
            if is_known
        ]
        mode = split_said(copies).mode
        is_silent = mode is None and origin.parent is not None and is_incognito(origin.parent)
        return mode is NoSave.SESSION or is_silent

    def _note_begun(self, session_id: str) -> None:
        if len(self._begun) >= MOST_BEGUN:
            self._begun.clear()
        self._begun.add(session_id)

    def take(
        self, workspace: Workspace, session: AgentSession, source: SaidSource, is_silent: Callable[[Workspace], bool]
    ) -> None:
        """Store each new record in the workspace of its folder, or in that of the event if it has none.

        Commands that the person typed while the agent worked are run; what they took back is archived.
        Records read while a workspace is incognito or captures nothing are never stored. If a workspace cannot store
        its records, they are read again the next time; its error is raised after the others are stored.
        """
        try:
            failure = self._take_new(workspace, session, source, is_silent)
        except UnreadableTranscript as error:
            # The error recurs at the end of every turn, so report it only once.
            self._reported.get(str(error), bool, partial(_report, workspace, error))
            return
        if failure is not None:
            raise failure
        source.note_taken()

    def _take_new(
        self, workspace: Workspace, session: AgentSession, source: SaidSource, is_silent: Callable[[Workspace], bool]
    ) -> ReverieError | None:
        failure: ReverieError | None = None
        session_id = session.id or ""
        with self._transcripts.reading(session_id) as reading:
            records, mark = source.read(reading.mark)
            names = [
                _name_record(record, workspace.person_id, session_id, in_file=mark is not None) for record in records
            ]
            is_new = reading.add(names)
            new = [named for named, unread in zip(zip(records, names, strict=True), is_new, strict=True) if unread]
            # A session may be incognito in the workspace that it has moved to.
            silent = is_silent(workspace)
            for owner, group in _group_by_workspace(new, workspace, source):
                try:
                    if not (silent or is_silent(owner)):
                        self._store(owner, session, [record for record, _ in group])
                except ReverieError as error:
                    failure = error
                    reading.forget([known for _, known in group])
            if mark is not None and failure is None:
                self._note_begun(session_id)
                reading.set_mark(clean_mark(mark, keeps_texts=False) if silent else mark, time.time())
        return failure

    def _store(self, workspace: Workspace, session: AgentSession, records: Sequence[SaidRecord]) -> None:
        if not workspace.settings.enabled or workspace.settings.read_only:
            return
        session_id, now = session.id or "", utc_now()
        said = [(record, _make_message(workspace, session_id, record, now)) for record in records]
        take_back(workspace, session_id, [message for record, message in said if record.is_taken_back])
        if take_turns(workspace, session_id, [message for record, message in said if not record.is_taken_back]):
            # Propose the lessons of the turn for review.
            distill_session(workspace, session_id)
        for record, message in said:
            if record.is_mid_turn and record.role is Role.USER and not record.is_taken_back:
                self._run_commands(workspace, session, message)

    def _run_commands(self, workspace: Workspace, session: AgentSession, message: Message) -> None:
        """Run the commands in a message that reached the agent in the middle of its turn."""
        match find_no_save(message.content):
            case NoSave.SESSION:
                begin_incognito(workspace, message.session_id)
            case None:
                # With the time of the message, a memory has the same id at each attempt.
                mark = SpooledMark(message.at, int(parse(message.at).timestamp() * 1e9))
                obey(workspace, self._contexts, session, message.content, mark)


def _report(workspace: Workspace, error: UnreadableTranscript) -> bool:
    workspace.operations.record_error("hooks", str(error), workspace=workspace.id)
    return True


def _name_record(record: SaidRecord, person_id: str | None, session_id: str, *, in_file: bool) -> list[Name]:
    """Return the names that identify a record and its copies; none for a message that is only in an event."""
    names: list[Name] = []
    if record.is_taken_back:
        return [name_taken_back(Message(session_id, record.role, record.content, record.at or ""))]
    if record.id:
        names.append((person_id, "id", record.id))
    if record.at:
        names.append((person_id, "at", record.at, record.role, record.content))
    if in_file and not names:
        names.append((person_id, "in", session_id, record.role, record.content))
    return names


def _group_by_workspace(
    records: Sequence[_Named], workspace: Workspace, source: SaidSource
) -> list[tuple[Workspace, list[_Named]]]:
    workspaces: dict[str, Workspace] = {}
    groups: dict[str, tuple[Workspace, list[_Named]]] = {}
    for record, names in records:
        if record.folder not in workspaces:
            workspaces[record.folder] = _find_workspace(record.folder, workspace, source)
        owner = workspaces[record.folder]
        groups.setdefault(owner.id, (owner, []))[1].append((record, names))
    return list(groups.values())


def _find_workspace(folder: str, workspace: Workspace, source: SaidSource) -> Workspace:
    if not Path(folder).is_absolute():
        return workspace
    try:
        return source.find_workspace(folder)
    except InvalidField:
        # The folder is no longer readable.
        return workspace


def _make_message(workspace: Workspace, session_id: str, record: SaidRecord, now: str) -> Message:
    is_person = record.role is Role.USER
    content = find_typed(workspace, record.content, record.folder) if is_person else record.content
    return Message(session_id, record.role, content, record.at or now)
