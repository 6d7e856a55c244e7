"""Import the records that hosts keep of a session, each once, into the workspace of its folder."""

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
    """A message in a host's record, with its id, time and folder, if the host recorded them."""

    role: Role
    content: str
    id: str | None = None
    at: str | None = None
    folder: str = ""


# Returns the records after a mark, and the mark after them; None if they do not come from a file.
SaidReader = Callable[[TranscriptMark | None], tuple[list[SaidRecord], TranscriptMark | None]]


@dataclass(frozen=True, slots=True)
class SaidSource:
    """The reader of a session's records, and a function that returns the workspace of a folder."""

    read: SaidReader
    find_workspace: Callable[[str], Workspace]
    # Called when everything that was said is stored, or is not to be stored.
    note_taken: Callable[[], None] = lambda: None


# Maximum number of unreadable transcripts to remember, so that each is reported once.
MOST_REPORTED = 256

# A record, and the names by which it is known.
_Named = tuple[SaidRecord, Sequence[Name]]


class SaidRecordStore:
    """Store the records of hosts."""

    def __init__(self, transcripts: Transcripts) -> None:
        self._transcripts = transcripts
        self._reported: LruCache[str, bool] = LruCache(MOST_REPORTED)

    def take(
        self, workspace: Workspace, session_id: str, source: SaidSource, is_silent: Callable[[Workspace], bool]
    ) -> None:
        """Store each new record in the workspace of its folder, or in that of the event if it has none.

        Records read while a workspace is incognito or captures nothing are never stored. If a workspace cannot store
        its records, they are read again the next time; its error is raised after the others are stored.
        """
        try:
            failure = self._take_new(workspace, session_id, source, is_silent)
        except UnreadableTranscript as error:
            # The error recurs at the end of every turn, so report it only once.
            self._reported.get(str(error), bool, partial(_report, workspace, error))
            return
        if failure is not None:
            raise failure
        source.note_taken()

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
    """Return the mark of an earlier version, which stored the offset in the workspace."""
    if not workspace.exists:
        return None
    with workspace.database.read() as db:
        offset = agent_sessions.get_read_offset(db, session_id)
    return None if offset is None else TranscriptMark(offset, None)


def _name_record(record: SaidRecord, person_id: str | None, session_id: str, *, in_file: bool) -> list[Name]:
    """Return the names that identify a record and its copies; none for a message that is only in an event."""
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
        # The folder is no longer readable.
        return workspace


def _store(workspace: Workspace, session_id: str, records: Sequence[SaidRecord]) -> None:
    if not workspace.settings.enabled or workspace.settings.read_only:
        return
    now = utc_now()
    messages = [Message(session_id, record.role, record.content, record.at or now) for record in records]
    if take_turns(workspace, session_id, messages):
        # Propose the lessons of the turn for review.
        distill_session(workspace, session_id)
