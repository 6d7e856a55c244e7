"""The brief at the start of a session: memories about the user, the project's brief, or where the session left off."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from sqlite3 import Connection
from types import MappingProxyType

from pipeline.kernel.kinds import is_indexed
from pipeline.kernel.records import Filter, Kind, Memory, Trust
from pipeline.kernel.records.hooks import AgentSession
from pipeline.kernel.registry import collect
from pipeline.kernel.store import agent_sessions, memories, meta, turns
from pipeline.kernel.store.agent_sessions import Action, ActionType
from pipeline.kernel.store.database import Database
from pipeline.kernel.store.impressions import Impression, make_impressions
from pipeline.prompt.render import (
    SHOWN_EACH,
    Entry,
    Lesson,
    SectionRoom,
    describe_record,
    drop_dead,
    is_rule,
    list_rules,
    list_shown_unasked,
    render_block,
    render_brief_line,
    repeats_rule,
    with_records,
)
from pipeline.prompt.start.open_work import describe_last_exchange, describe_past_sessions
from pipeline.recall.annotations import drop_superseded
from pipeline.text.own_words import join_own_lines
from pipeline.text.quoting import quote

ACTIONS_SHOWN = 12
# The order of a brief. Rules and goals are chosen first, then what was confirmed, used or said lately.
BRIEF_KINDS = (Kind.LESSON, Kind.KEYED_FACT, Kind.FACT, Kind.DECISION)
GROUPS = (*BRIEF_KINDS, Kind.GOAL)
# The longest brief, and the newest memories that it is chosen from. A message up to this length is shown whole.
BRIEF_CHARS = 2000
NEWEST = 100
MESSAGE_CHARS = 160
LEFT_OFF = "Where this session left off, as its journal noted:"
# Maximum number of personal memories.
PERSON_SHOWN = 8
# How many newer memories a confirmation outweighs, and the uses of a memory at most.
CONFIRMED = 5
MOST_USES = 5
# Of what capture keeps with a lower certainty, every second statement is none (decision 0080).
SURE = 0.7


@dataclass(frozen=True, slots=True)
class SessionBrief:
    """The text that an agent is shown at the start of a session, its memories, and the impressions of its lessons."""

    text: str
    shown: tuple[Memory, ...]
    impressions: tuple[Impression, ...] = ()
    person_shown: tuple[Memory, ...] = ()
    has_history: bool = False
    """Whether the text describes imported sessions."""


@dataclass(frozen=True, slots=True)
class BriefRoom:
    """The maximum length of a brief, its time, and notes to start with.

    `shows_history`: describe imported sessions, unless another session was shown them.
    """

    max_chars: int
    now: datetime
    notes: tuple[str, ...] = ()
    shows_history: bool = False


def brief_project(
    database: Database | None, person: Database | None, session: AgentSession, room: BriefRoom
) -> SessionBrief | None:
    """Return what holds in a project: goals, rules, decisions and facts, those about the user, and past sessions.

    Return None if there is nothing.
    """
    room = replace(room, max_chars=min(room.max_chars, BRIEF_CHARS))
    rules = list_rules(database, person)
    about: list[Memory] = []
    if person is not None:
        with person.read() as db:
            leading = memories.list_leading(db, Filter(scope=session.viewer.personal), 2 * PERSON_SHOWN)
            of_person = drop_superseded(db, list_shown_unasked(leading))[:PERSON_SHOWN]
        about = [memory for memory in of_person if not repeats_rule(memory, rules)]
    if database is None:
        return _brief([], about, [], session, room)
    with database.read() as db:
        candidates = list_shown_unasked(collect("list_unfinished", db, session.viewer, SHOWN_EACH))
        newest = memories.page(db, Filter(kinds=BRIEF_KINDS, viewer=session.viewer), NEWEST, None)
        stated = [memory for memory in newest if not is_indexed(memory) and not repeats_rule(memory, rules)]
        alive = drop_dead(db, drop_superseded(db, list_shown_unasked(stated)))
        candidates += _order_by_value(alive)
        records = {
            record.memory.seq: record
            for record in with_records(db, [memory for memory in candidates if is_rule(memory)])
        }
        history = _describe_history(db, session, room, candidates)
        excerpts = _read_messages(db, candidates)
    brief = _brief([*room.notes, *history], about, candidates, session, room, records, excerpts)
    return None if brief is None else replace(brief, has_history=bool(history))


def _read_messages(db: Connection, candidates: Sequence[Memory]) -> dict[int, str]:
    """Return the short messages of which some statements were made, by memory: the other sentences explain each one.

    A message of which a part is not current is left out.
    """
    captured = {memory.seq: memory for memory in candidates if memory.said_by is not None}
    turn_of = {seq: memory.metadata["turn"] for seq, memory in captured.items()}
    replaced = turns.list_not_current(db, turn_of.values())
    said = {turn.seq: join_own_lines(turn.content) for turn in turns.by_seqs(db, list(turn_of.values()))}
    return {
        seq: said[turn]
        for seq, turn in turn_of.items()
        # A memory says more than its message if the message only gives a value: "make it 8".
        if turn in said and turn not in replaced and len(captured[seq].content) <= len(said[turn]) <= MESSAGE_CHARS
    }


def _order_by_value(newest: Sequence[Memory]) -> list[Memory]:
    """Order memories, the newest first, by what to show if not all fit: rules, then statements, then the others.

    A confirmation or a few uses count as much as some newer memories. What capture kept in doubt comes after the rest.
    """

    def value(place: tuple[int, Memory]) -> tuple[bool, bool, bool, int]:
        rank, memory = place
        stated = memory.said_by is not None or memory.trust is Trust.TRUSTED
        used = CONFIRMED * min(memory.merge_count, 2) + min(memory.recall_count, MOST_USES)
        # Capture may have been unsure; a repetition, an agreement or a pin confirms the statement.
        is_confirmed = memory.pinned or memory.merge_count > 0 or "agreed" in memory.metadata
        doubted = not is_confirmed and memory.metadata.get("certainty", 1) < SURE
        return not (memory.pinned or (is_rule(memory) and not doubted)), not stated, doubted, rank - used

    return [memory for _, memory in sorted(enumerate(newest), key=value)]


def _describe_history(
    db: Connection, session: AgentSession, room: BriefRoom, candidates: Sequence[Memory]
) -> list[str]:
    """Describe imported sessions to the first session that starts after their import."""
    is_first = session.id is not None and meta.get(db, meta.HISTORY_SHOWN_TO) in (None, session.id)
    if not (room.shows_history and is_first):
        return []
    return describe_past_sessions(db, session, room.now, [memory.content for memory in candidates])


def brief_resumed_session(
    database: Database, person: Database | None, session: AgentSession, room: BriefRoom
) -> SessionBrief | None:
    """Return where a session stopped, then the project's brief, which the agent may have lost; None for a new one."""
    if session.id is None:
        return None
    with database.read() as db:
        stopped = describe_last_exchange(db, session.id)
        did = [] if stopped else agent_sessions.list_actions(db, session.id, "", ACTIONS_SHOWN)
        noted = memories.page(db, Filter(session_id=session.id, viewer=session.viewer), 1, None)
    if not (stopped or did or noted):
        return None
    lines = stopped or _render_actions(did, min(room.max_chars, BRIEF_CHARS) // 2)
    return brief_project(database, person, session, replace(room, notes=(*lines, *room.notes)))


def _brief(
    lines: Sequence[str],
    about: Sequence[Memory],
    candidates: Sequence[Memory],
    session: AgentSession,
    room: BriefRoom,
    records: Mapping[int, Lesson] = MappingProxyType({}),
    excerpts: Mapping[int, str] = MappingProxyType({}),
) -> SessionBrief | None:
    left = room.max_chars - sum(len(line) + 1 for line in lines)
    rules = make_impressions([memory for memory in candidates if memory.seq in records], session.id, session.agent_id)
    ids = {impression.memory_seq: impression.id for impression in rules}
    described = {seq: describe_record(record) for seq, record in records.items()}
    entries = [
        *(Entry(memory, of_person=True) for memory in about),
        *(
            Entry(memory, impression_id=ids.get(memory.seq), record=described.get(memory.seq), excerpt=excerpt)
            for memory, excerpt in _list_texts(candidates, excerpts)
        ),
    ]
    # The first entries that fit, whichever part of the block they belong to: about the user and pinned, then by kind.
    picked = SectionRoom(left)
    chosen = sorted(
        (entry for entry in entries if picked.add(entry.header, [entry], [render_brief_line(entry, room.now)])),
        key=lambda entry: -1 if entry.of_person or entry.memory.pinned else GROUPS.index(entry.memory.kind),
    )
    block, rendered = render_block(chosen, left, room.now, render=render_brief_line)
    if block is None and not lines:
        return None
    shown = {entry.impression_id for entry in rendered}
    return SessionBrief(
        "\n".join([*lines, *([block] if block else [])]),
        tuple(entry.memory for entry in rendered if not entry.of_person),
        tuple(impression for impression in rules if impression.id in shown),
        tuple(entry.memory for entry in rendered if entry.of_person),
    )


def _list_texts(shown: Sequence[Memory], excerpts: Mapping[int, str]) -> Iterator[tuple[Memory, str | None]]:
    """Yield memories with the text to show instead of their own, if there is one; each text once."""
    texts = set[str]()
    for memory in shown:
        excerpt = excerpts.get(memory.seq)
        if excerpt is None or excerpt not in texts:
            yield memory, excerpt
        texts.add(excerpt or "")


def _render_actions(did: Sequence[Action], room: int) -> list[str]:
    """Return the newest actions that fit, oldest first, without direct repetitions."""
    lines: list[str] = []
    room -= len(LEFT_OFF) + 1
    for action in reversed(did):
        # Quoted, because a hostile project chooses its file names.
        if action.type is ActionType.READ:
            continue
        line = f"- {action.type} {quote(action.target)}{'' if action.ok else ' (failed)'}"
        if lines and lines[-1] == line:
            continue
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    return [LEFT_OFF, *reversed(lines)] if lines else []
