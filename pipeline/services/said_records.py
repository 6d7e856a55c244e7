"""What hosts recorded of a session: each record is taken once, in the workspace of the folder in which it was said."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pipeline.errors import InvalidField, ReverieError, UnreadableTranscript
from pipeline.lru import LruCache
from pipeline.records.transcripts import TranscriptMark
from pipeline.services.distill import distill_session
from pipeline.services.turns import take_turns
from pipeline.store import agent_sessions
from pipeline.store.transcripts import Name, Transcripts
from pipeline.store.turns import Message, Role
from pipeline.times import utc_now
from pipeline.workspace import Workspace


@dataclass(frozen=True, slots=True)
class SaidRecord:
    """Words in a host's record: its id, its time and the folder in which they were said, as far as the host says."""

    role: Role
    content: str
    id: str | None = None
    at: str | None = None
    folder: str = ""


# Returns the records behind a mark, and the mark behind them; None where they come from no file.
SaidReader = Callable[[TranscriptMark | None], tuple[list[SaidRecord], TranscriptMark | None]]


@dataclass(frozen=True, slots=True)
class SaidSource:
    """Where the words of a session are read, and which workspace belongs to a folder."""

    read: SaidReader
    find_workspace: Callable[[str], Workspace]


# Of more unreadable transcripts than these, the oldest may be reported once more.
MOST_REPORTED = 256

# A record, and the names by which it is known.
_Named = tuple[SaidRecord, Sequence[Name]]


class SaidRecordStore:
    """Store what hosts recorded."""

    def __init__(self, transcripts: Transcripts) -> None:
        self._transcripts = transcripts
        self._reported: LruCache[str, bool] = LruCache(MOST_REPORTED)

    def take(
        self, workspace: Workspace, session_id: str, source: SaidSource, is_silent: Callable[[Workspace], bool]
    ) -> None:
        """Store each record that was never read, in the workspace of its folder, else in the one of the event.

        What is read while a workspace is silent or captures nothing is not stored later either. Where a workspace
        cannot store its records, they are read again the next time, and its error is raised once the others are stored.
        """
        try:
            failure = self._take_new(workspace, session_id, source, is_silent)
        except UnreadableTranscript as error:
            # It is refused again at the end of every turn, and reported once.
            self._reported.get(str(error), bool, partial(_report, workspace, error))
            return
        if failure is not None:
            raise failure

    def _take_new(
        self, workspace: Workspace, session_id: str, source: SaidSource, is_silent: Callable[[Workspace], bool]
    ) -> ReverieError | None:
        failure: ReverieError | None = None
        with self._transcripts.reading(session_id) as reading:
            records, mark = source.read(reading.mark or _find_earlier_mark(workspace, session_id))
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
                        _store(owner, session_id, [record for record, _ in group])
                except ReverieError as error:
                    failure = error
                    reading.forget([known for _, known in group])
            if mark is not None and failure is None:
                reading.set_mark(mark, utc_now())
        return failure


def _report(workspace: Workspace, error: UnreadableTranscript) -> bool:
    workspace.operations.record_error("hooks", str(error), workspace=workspace.id)
    return True


def _find_earlier_mark(workspace: Workspace, session_id: str) -> TranscriptMark | None:
    """Return where an earlier version, which kept the offset in the workspace, stopped reading."""
    if not workspace.exists:
        return None
    with workspace.database.read() as db:
        offset = agent_sessions.get_read_offset(db, session_id)
    return None if offset is None else TranscriptMark(offset, None)


def _name_record(record: SaidRecord, person_id: str | None, session_id: str, *, in_file: bool) -> list[Name]:
    """Return the names by which a record is known wherever it is copied; none for words that are only an event's."""
    names: list[Name] = []
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
        # The folder cannot be looked at any more.
        return workspace


def _store(workspace: Workspace, session_id: str, records: Sequence[SaidRecord]) -> None:
    if not workspace.settings.hooks or workspace.settings.read_only:
        return
    now = utc_now()
    messages = [Message(session_id, record.role, record.content, record.at or now) for record in records]
    if take_turns(workspace, session_id, messages):
        # What the turn taught waits for a person.
        distill_session(workspace, session_id)
