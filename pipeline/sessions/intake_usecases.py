"""Store what a session's host recorded since the last reading, each message in the workspace of its folder."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from pipeline.features.capture.distill import distill_session
from pipeline.features.capture.usecases import (
    drop_ended_turn,
    follows_silent_turn,
    leave_uncaptured,
    run_memory_commands,
)
from pipeline.kernel.errors import InvalidField, ReverieError, UnreadableTranscript
from pipeline.kernel.lru import LruCache
from pipeline.kernel.records import OWNED
from pipeline.kernel.records.hooks import AgentSession, SpooledMark
from pipeline.kernel.store.transcripts import FileMark, Transcripts, name_file
from pipeline.kernel.store.turns import Message, Role
from pipeline.kernel.times import parse, utc_now
from pipeline.kernel.workspace import Workspace
from pipeline.recall.contexts import SearchContexts
from pipeline.sessions.folders import find_refusal
from pipeline.sessions.incognito import begin_incognito, end_incognito
from pipeline.sessions.intake import SessionReading, drop_read, store_part
from pipeline.sessions.orders.commands import CommandType, read_commands
from pipeline.sessions.orders.nosave import NoSave, find_no_save
from pipeline.sessions.orders.taken_back import take_back
from pipeline.sessions.orders.unsaved import split_said
from pipeline.sessions.prepare import PartPreparer, PreparedMessage, PreparedPart, clean_mark, name_said, split_part
from pipeline.sessions.readers.reader import Said, SessionPart
from pipeline.text.own_words import drop_private

# Maximum number of unreadable transcripts to remember, so that each is reported once.
MOST_REPORTED = 256
# Maximum number of sessions to remember as read.
MOST_BEGUN = 10_000


@dataclass(frozen=True, slots=True)
class SessionSource:
    """The reader of a session's records after a mark, and a function that returns the workspace of a folder.

    `file` is the agent and the path of the session's file, None for messages in an event.
    """

    read: Callable[[str | None], Iterator[SessionPart]]
    find_workspace: Callable[[str], Workspace]
    file: tuple[str, Path] | None = None
    # Called when everything that was said is stored, or is not to be stored.
    note_taken: Callable[[], None] = lambda: None


class SessionIntake:
    """Store the sessions that hooks report; `usual` is the workspace of folders without their own workspace."""

    def __init__(self, transcripts: Transcripts, contexts: SearchContexts, usual: Workspace) -> None:
        self._transcripts = transcripts
        self._contexts = contexts
        self._usual = usual
        self._reported: LruCache[str, bool] = LruCache(MOST_REPORTED)
        # Sessions whose file was read: a prompt waits for no reading of it.
        self._begun: LruCache[str, bool] = LruCache(MOST_BEGUN)
        # Sessions whose last turn ended, and was read.
        self._ended: LruCache[str, bool] = LruCache(MOST_BEGUN)

    def note_ended(self, session_id: str) -> None:
        """Note that the turn of a session ended, and is read."""
        self._ended.put(session_id, True)

    def is_turn_ended(self, session_id: str) -> bool:
        """Return, once, whether the last turn of a session ended."""
        is_ended = self._ended.peek(session_id) or False
        self._ended.put(session_id, False)
        return is_ended

    def continue_silence(
        self, workspace: Workspace, session: AgentSession, source: SessionSource, is_incognito: Callable[[str], bool]
    ) -> None:
        """Make a session incognito if it continues one in which nothing may be saved."""
        if session.id is None or self._begun.peek(session.id) or source.file is None:
            return
        # Reading its messages reports a file that cannot be read.
        with suppress(UnreadableTranscript):
            if self._continues_silence(session.id, source, is_incognito):
                begin_incognito(workspace, session.id)

    def _continues_silence(self, session_id: str, source: SessionSource, is_incognito: Callable[[str], bool]) -> bool:
        """Return whether a file that was never read begins as a copy of a session in which nothing may be saved."""
        if self._find_mark(source) is not None:
            self._begun.put(session_id, True)
            return False
        parts = list(source.read(None))
        said = [(entry, part.session) for part in parts for entry in part.entries if isinstance(entry, Said)]
        names = [name_said(entry, head.agent, None) for entry, head in said]
        known = self._transcripts.list_known(name for each in names for name in each)
        copies = [
            Message(session_id, entry.role, entry.content, entry.at or "")
            for (entry, _), own in zip(said, names, strict=True)
            if not known.isdisjoint(own)
        ]
        if not copies:
            return False
        mode = split_said(copies).mode
        parent = next((part.session.parent for part in reversed(parts) if part.session.parent), None)
        return mode is NoSave.SESSION or (mode is None and parent is not None and is_incognito(parent))

    def _find_mark(self, source: SessionSource) -> str | None:
        return None if source.file is None else self._transcripts.find_mark(_name_file(source.file))

    def take(
        self, workspace: Workspace, session: AgentSession, source: SessionSource, is_silent: Callable[[Workspace], bool]
    ) -> None:
        """Store each new record in the workspace of its folder, or in that of the event if it has none.

        Orders that the person typed while the agent worked are carried out; what they took back is archived. Records
        read while a workspace is incognito or captures nothing are never stored. If a workspace cannot store its
        records, they are read again the next time; its error is raised after the others are stored.
        """
        reading = _Reading(self._transcripts, self._contexts, self._usual, workspace, session, source, is_silent)
        try:
            reading.run(self._find_mark(source))
        except UnreadableTranscript as error:
            # The error recurs at the end of every turn, so report it only once.
            self._reported.get(str(error), bool, partial(_report, workspace, error))
            return
        if reading.failure is not None:
            raise reading.failure
        source.note_taken()


@dataclass(slots=True)
class _Reading:
    """One reading of a session."""

    transcripts: Transcripts
    contexts: SearchContexts
    usual: Workspace
    workspace: Workspace
    session: AgentSession
    source: SessionSource
    is_silent: Callable[[Workspace], bool]
    resumes: bool = False
    failure: ReverieError | None = None
    now: str = field(default_factory=utc_now)
    readings: dict[str, SessionReading] = field(default_factory=dict)
    owners: dict[str, Workspace] = field(default_factory=dict)

    @property
    def session_id(self) -> str:
        """Return the id of the session; empty without one."""
        return self.session.id or ""

    def run(self, since: str | None) -> None:
        """Store what comes after a mark, and note how far it was read."""
        follows_silence, has_said = follows_silent_turn(self.workspace, self.session_id), False
        # A message in an event is new, also if the session has the same words.
        self.resumes = since is not None or self.source.file is None
        preparer = PartPreparer(self.workspace.person_id, is_silent=follows_silence)
        # The file may have the id of another session, from which its records were copied.
        prepared_id = self.session_id.replace(OWNED, "/")
        for part in self.source.read(since):
            has_said = has_said or any(isinstance(entry, Said) for entry in part.entries)
            own = replace(part, session=replace(part.session, id=prepared_id))
            prepared = _keep_mid_turn_orders(part, preparer.prepare(own))
            # A session may be incognito in the workspace that it has moved to.
            silent = self.is_silent(self.workspace)
            names = self._take(replace(prepared, session=replace(prepared.session, id=self.session_id)), silent=silent)
            self._note(names, clean_mark(part.mark, keeps_texts=not silent))
        if follows_silence and has_said:
            drop_ended_turn(self.workspace, self.session_id)

    def _note(self, names: Sequence[str], mark: str) -> None:
        file = self.source.file
        # After a failure, the part is read again.
        marks = {} if file is None or self.failure else {_name_file(file): (file[0], FileMark(mark))}
        self.transcripts.note_read(names, marks)

    def _take(self, part: PreparedPart, *, silent: bool) -> list[str]:
        """Store a part in the workspaces of its folders; return the names of what was read."""
        names: list[str] = []
        for owner_id, split in split_part(replace(part, actions=()), self._find_owner):
            owner = self.owners[owner_id]
            own, new = drop_read(split, self.transcripts.list_known)
            try:
                if own.mode is NoSave.RESUME and (silent or self.is_silent(owner)):
                    self._resume(owner)
                    silent = self.is_silent(self.workspace)
                    own = replace(own, messages=tuple(each for each in own.messages if each.is_resumed))
                if not (silent or self.is_silent(owner)):
                    self._store(owner, own)
            except ReverieError as error:
                self.failure = error
            else:
                names += new
        return names

    def _find_owner(self, folder: str) -> str:
        """Return the id of the workspace of a folder."""
        owner = self.workspace
        if Path(folder).is_absolute():
            try:
                owner = self.source.find_workspace(folder)
            except InvalidField:
                # The folder is no longer readable.
                owner = self.workspace
        self.owners[owner.id] = owner
        return owner.id

    def _resume(self, owner: Workspace) -> None:
        for store in (owner, self.workspace, self.workspace.sibling(self.usual.id)):
            end_incognito(store, self.session_id)

    def _store(self, workspace: Workspace, part: PreparedPart) -> None:
        if find_refusal(workspace) is not None:
            return
        if part.messages or part.mode is not None or part.forgets_before:
            has_file = self.source.file is not None
            reading = self.readings.setdefault(
                workspace.id, SessionReading(self.now, self.resumes, has_file=has_file, is_import=False)
            )
            with workspace.create().write() as db:
                stored = store_part(db, part, reading, with_actions=False).turns
            if stored:
                # Propose the lessons of the turn for review.
                distill_session(workspace, self.session_id)
            self._carry_out(workspace, stored)
        removed = [Message(self.session_id, each.role, each.content, each.at) for each in part.taken_back]
        take_back(workspace, self.session_id, removed)

    def _carry_out(self, workspace: Workspace, stored: Sequence[tuple[int, PreparedMessage]]) -> None:
        """Carry out the orders to remember or forget in new messages that the person typed while the agent worked."""
        for seq, message in stored:
            if message.role is not Role.USER or not message.is_mid_turn or find_no_save(message.content) is not None:
                continue
            for command in read_commands(drop_private(message.content)):
                if command.type is CommandType.FORGET and not (command.is_doubtful or command.is_loose):
                    leave_uncaptured(workspace, self.session_id, seq, command.text)
            # With the time of the message, a memory has the same id at each attempt.
            mark = SpooledMark(message.at, int(parse(message.at).timestamp() * 1e9))
            run_memory_commands(workspace, self.contexts, self.session, message.content, mark)


def _keep_mid_turn_orders(part: SessionPart, prepared: PreparedPart) -> PreparedPart:
    """Return a part with the no-save orders in the middle of a turn only: a prompt's are carried out at once."""
    orders = [
        find_no_save(entry.content)
        for entry in part.entries
        if isinstance(entry, Said) and entry.is_mid_turn and entry.role is Role.USER
    ]
    modes = [order for order in orders if order in (NoSave.SESSION, NoSave.RESUME)]
    forgets_before = prepared.forgets_before and NoSave.TURN in orders
    return replace(prepared, mode=modes[-1] if modes else None, forgets_before=forgets_before)


def _name_file(file: tuple[str, Path]) -> str:
    agent, path = file
    return name_file(agent, str(path))


def _report(workspace: Workspace, error: UnreadableTranscript) -> bool:
    workspace.operations.record_error("hooks", str(error), workspace=workspace.id)
    return True
