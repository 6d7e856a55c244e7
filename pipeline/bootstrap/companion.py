"""What accompanies an agent through a session: told before it answers and acts, taking notes of what it does.

An agent is answered from what is known; what is noted for later is written beside the traffic, in order.
"""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from pipeline.bootstrap.front import Front
from pipeline.bootstrap.parts import recall_budget_ms
from pipeline.context.advice import LOOKED_AT, lessons_about
from pipeline.context.prepare import UNTOLD, PrepareLimits, prepare
from pipeline.context.render import Entry, fitting, render_block
from pipeline.context.session import brief, where_it_left_off
from pipeline.context.turn import Surfaced, followed_in, result_of
from pipeline.errors import NotFound
from pipeline.kinds import render_text
from pipeline.records import Draft, Kind, Memory, Source, Viewer
from pipeline.services.feedback import make_impressions
from pipeline.store import actions, impressions, incognito, memories
from pipeline.store.database import Database
from pipeline.store.impressions import Impression
from pipeline.times import parse, utc_now, utc_text
from pipeline.write.accept import accept
from pipeline.write.tool_actions import find_target, recognize_action

ADVICE_AT_ONCE = 3
TURN_ACTIONS = 200
# Where a session goes on with less than it knew.
RESUMED = frozenset({"compact", "resume"})
FORGETFUL = RESUMED | {"clear"}
# A session that rests for longer than this may be told everything again.
SESSION_REST = timedelta(days=90)
AMBIENT_TAG = "ambient"
AMBIENT_IMPORTANCE = 0.5

Note = Callable[[Database], object]


@dataclass(frozen=True, slots=True)
class Seat:
    """Where an agent sits: its workspace and folder, its session, and, for a subagent, which one it is."""

    workspace: str
    session: str | None
    agent: str | None = None
    cwd: str = ""

    @property
    def viewer(self) -> Viewer:
        """Return what the agent may see."""
        return Viewer(session=self.session, agent=self.agent)


class Companion:
    """Answer the events of an agent's session."""

    def __init__(self, front: Front) -> None:
        self._front = front

    def prompt(self, seat: Seat, message: str) -> str | None:
        """Return what is known about a message and was not told in this session; None when that takes too long."""
        began = time.perf_counter()
        database = self._database(seat.workspace)
        if database is None or self._silent(seat):
            return None
        self._front.asked(seat.workspace, message, seat.session)
        settings = self._front.workspace_settings(seat.workspace)
        if seat.session is not None:
            # What was told a moment ago is noted by then; nobody waits for the note of this turn.
            self._front.feedback.flush()
            self._note(seat, partial(_begin_turn, session=seat.session, cwd=seat.cwd, at=utc_now()))
        surfaced: list[Impression] = []

        def surface(shown: Sequence[Memory]) -> list[str]:
            surfaced.extend(make_impressions(shown, seat.session, seat.agent))
            return [one.id for one in surfaced]

        briefing = prepare(
            self._front.reader(seat.workspace),
            message,
            seat.viewer,
            PrepareLimits(recall_budget_ms(settings), settings.hook_max_chars),
            surface,
            datetime.now(UTC),
            lambda found: self._untold(seat, database, found),
        )
        if (time.perf_counter() - began) * 1000 > settings.hook_budget_ms:
            # Nobody waits any more: nothing was told, and nothing is noted as told.
            return None
        self._front.feedback.record_impressions(self._front.workspace(seat.workspace), surfaced)
        self._front.feedback.record_accesses(self._front.workspace(seat.workspace), briefing.shown)
        self._note_told(seat, briefing.shown)
        return briefing.text or None

    def session_start(self, seat: Seat, source: str) -> str | None:
        """Return the project's brief, or where a session left off that goes on with less than it knew."""
        database = self._database(seat.workspace)
        if database is None or self._silent(seat):
            return None
        room = self._front.workspace_settings(seat.workspace).hook_max_chars
        if source in FORGETFUL and seat.session is not None:
            self._note(seat, partial(_forget_told, session=seat.session))
        # What was done a moment ago is written by then.
        self._front.feedback.flush()
        opening, now = None, datetime.now(UTC)
        if source in RESUMED and seat.session is not None:
            opening = where_it_left_off(database, seat.session, seat.viewer, room, now)
        opening = opening or brief(database, seat.viewer, room, now)
        if opening is None:
            return None
        self._note_told(seat, opening.shown)
        return opening.text

    def before_tool(self, seat: Seat, tool: str, given: Mapping[str, Any]) -> str | None:
        """Return the lessons that name what is about to be touched, each once a session."""
        touch = find_target(tool, given)
        database = None if touch is None else self._database(seat.workspace)
        if touch is None or database is None or self._silent(seat):
            return None
        with database.read() as db:
            found = lessons_about(db, touch.type, touch.target, seat.viewer, LOOKED_AT)
        if not found:
            return None
        # What was told a moment ago is noted by then.
        self._front.feedback.flush()
        fresh = self._untold(seat, database, found)[:ADVICE_AT_ONCE]
        room, now = self._front.workspace_settings(seat.workspace).hook_max_chars, datetime.now(UTC)
        # Only what an agent gets to read counts as shown.
        shown = [entry.memory for entry in fitting([Entry(lesson, surface_id=UNTOLD) for lesson in fresh], room, now)]
        if not shown:
            return None
        surfaced = make_impressions(shown, seat.session, seat.agent)
        self._front.feedback.record_impressions(self._front.workspace(seat.workspace), surfaced)
        self._note_told(seat, shown)
        entries = [Entry(lesson, surface_id=one.id) for lesson, one in zip(shown, surfaced, strict=True)]
        return render_block(entries, room, now)

    def after_tool(self, seat: Seat, tool: str, given: Mapping[str, Any], *, ok: bool) -> None:
        """Note what was done; the first action in a project makes its workspace."""
        if seat.session is None:
            return
        session, at = seat.session, utc_now()

        def journal() -> None:
            action = recognize_action(session, seat.agent, at, tool, given, ok=ok, cwd=seat.cwd)
            if action is not None and not self._silent(seat):
                with self._front.databases.get(seat.workspace, create=True).write() as db:
                    actions.add(db, action)

        self._later(seat, journal)

    def turn_end(self, seat: Seat) -> None:
        """Say which lessons the turn followed, and keep its result where the agent kept nothing itself."""
        # A subagent's end is the end of no turn.
        if seat.session is not None and seat.agent is None:
            self._note(seat, partial(self._close_turn, seat=seat, session=seat.session, at=utc_now()))

    def flush(self, seat: Seat) -> None:
        """Write everything that was noted, without waiting for it longer than a moment."""
        if self._database(seat.workspace) is not None:
            self._front.feedback.flush_usage(self._front.workspace(seat.workspace))

    def _close_turn(self, database: Database, seat: Seat, session: str, at: str) -> None:
        with database.read() as db:
            began = actions.turn_began(db, session) or ""
            did = actions.since(db, session, began, TURN_ACTIONS)
            open_ones = impressions.unanswered(db, session)
            lessons = memories.by_seqs(db, {one.memory_seq for one in open_ones})
            recorded = memories.written_by_agent(db, session, began)
        shown = [
            Surfaced(one.id, one.at, lessons[one.memory_seq], one.agent_id)
            for one in open_ones
            if one.memory_seq in lessons and lessons[one.memory_seq].kind is Kind.LESSON
        ]
        answers = followed_in(shown, did)
        with database.write() as db:
            for answer in answers:
                impressions.answer(db, answer.surface_id, "by the journal", at, followed=answer.followed)
            # A turn may stop more than once; what it did is told once.
            actions.end_turn(db, session, utc_text(parse(at) + timedelta(milliseconds=1)))
        result = None if recorded else result_of(did)
        if result is not None:
            self._keep(database, seat, result)

    def _keep(self, database: Database, seat: Seat, result: str) -> None:
        draft = Draft(
            content=result,
            kind=Kind.ACTIVITY,
            source=Source.AMBIENT,
            importance=AMBIENT_IMPORTANCE,
            session_id=seat.session,
            tags=(AMBIENT_TAG,),
        )
        accept(database, draft, self._front.write_policy(seat.workspace))

    def _database(self, workspace: str) -> Database | None:
        try:
            return self._front.databases.get(workspace)
        except NotFound:
            # Nothing was ever written for this project: nothing to say, and nothing wrong.
            return None

    def _silent(self, seat: Seat) -> bool:
        """Tell whether a session or its workspace is off the record.

        As long as a project has no workspace of its own, its sessions are taken off the record in the usual one.
        """
        usual = self._front.settings.workspace
        names = (seat.workspace,) if seat.workspace == usual else (seat.workspace, usual)
        known = [(name, database) for name in names if (database := self._database(name)) is not None]
        decisive = known[0][0] if known else seat.workspace
        # A project's own settings may be there before its first memory is.
        if any(self._front.workspace_settings(name).incognito for name in {seat.workspace, decisive}):
            return True
        return seat.session is not None and any(_is_off_the_record(database, seat.session) for _, database in known)

    def _untold(self, seat: Seat, database: Database, found: Sequence[Memory]) -> list[Memory]:
        """Return those of some memories that an agent was not told in its session as they are now."""
        if seat.session is None or not found:
            return list(found)
        with database.read() as db:
            before = actions.told(db, seat.session, seat.agent or "", [memory.seq for memory in found])
        return [memory for memory in found if before.get(memory.seq) != _version(memory)]

    def _note_told(self, seat: Seat, shown: Sequence[Memory]) -> None:
        if seat.session is not None and shown:
            versions = [(memory.seq, _version(memory)) for memory in shown]
            self._note(seat, partial(_add_told, session=seat.session, agent=seat.agent or "", versions=versions))

    def _note(self, seat: Seat, note: Note) -> None:
        """Write a note in its turn, unless the session is off the record or nothing was ever done in the project."""

        def write() -> None:
            database = self._database(seat.workspace)
            if database is not None and not self._silent(seat):
                note(database)

        self._later(seat, write)

    def _later(self, seat: Seat, task: Callable[[], None]) -> None:
        self._front.feedback.submit_logged("hooks", seat.workspace, task)


def _is_off_the_record(database: Database, session: str) -> bool:
    with database.read() as db:
        return incognito.since(db, session) is not None


def _version(memory: Memory) -> str:
    return hashlib.sha256(render_text(memory).encode()).hexdigest()[:16]


def _begin_turn(database: Database, session: str, cwd: str, at: str) -> None:
    with database.write() as db:
        if actions.turn_began(db, session) is None:
            actions.forget_sessions(db, utc_text(parse(at) - SESSION_REST))
        actions.begin_turn(db, session, cwd, at)


def _forget_told(database: Database, session: str) -> None:
    with database.write() as db:
        actions.forget_told(db, session)


def _add_told(database: Database, session: str, agent: str, versions: Sequence[tuple[int, str]]) -> None:
    with database.write() as db:
        actions.note_told(db, session, agent, versions)
