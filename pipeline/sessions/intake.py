"""Store prepared parts of sessions in a workspace, each message and action once, also if hooks and an import read them.

A message that was read once is known by its record's id and by its text and time, in every workspace: forks and
resumed sessions copy records. A message or an action is also known if its session has it at its time or later,
because a hook may have delivered it without the time of its record. Messages without times are compared by number: of
two equal ones, the second is new if only one is stored.
"""

import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from sqlite3 import Connection
from typing import Generic, TypeVar

from pipeline.kernel.records.digestion import READING
from pipeline.kernel.store import agent_sessions, conclusions, refusals, session_archive, turns, work
from pipeline.kernel.store.agent_sessions import Action
from pipeline.kernel.store.refusals import RefusedBy
from pipeline.kernel.store.session_archive import ArchivedSession
from pipeline.kernel.store.turns import Message, Role
from pipeline.kernel.times import utc_now
from pipeline.sessions.orders.nosave import NoSave
from pipeline.sessions.prepare import PreparedMessage, PreparedPart
from pipeline.text.normalize import content_hash, normalize_id
from pipeline.text.sentences import split_sentences, split_typed_sentences

K = TypeVar("K", bound=Hashable)

# Why something is not stored.
KNOWN = "already stored"
INCOGNITO = "incognito session"
PURGED = "purged text"
NO_JOURNAL = "the journal is off in this project"


@dataclass(slots=True)
class _Counts(Generic[K]):
    """How often something was stored before a reading, and was read without a time."""

    before: Counter[K] | None = None
    read: Counter[K] = field(default_factory=Counter)


@dataclass(slots=True)
class SessionReading:
    """A session during a reading.

    `resumes` is whether the reader started after a mark, `has_file` whether it reads a file, which may have been
    rewritten, and `last_at` the time of the last entry. An import describes the session, a hook only names it.
    """

    fallback_at: str
    resumes: bool
    has_file: bool = True
    is_import: bool = True
    is_stored: bool = False
    last_at: str = ""
    messages: _Counts[int] = field(default_factory=_Counts)
    actions: _Counts[tuple[str, str]] = field(default_factory=_Counts)


@dataclass(slots=True)
class PartResult:
    """What was stored of a part: its new messages with their row numbers, and the numbers of other things."""

    turns: list[tuple[int, PreparedMessage]] = field(default_factory=list)
    queued: int = 0
    actions: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


def drop_read(
    part: PreparedPart, list_known: Callable[[Iterable[str]], set[str]]
) -> tuple[PreparedPart, frozenset[str]]:
    """Return a part without the messages that were read before, and the names of everything in it."""
    items = (*part.messages, *part.taken_back)
    names = frozenset(name for item in items for name in item.names) | frozenset(part.unsaved)
    known = list_known(names)
    messages, seen = [], set(known)
    for message in part.messages:
        if seen.isdisjoint(message.names):
            messages.append(message)
            seen.update(message.names)
    taken_back = tuple(item for item in part.taken_back if known.isdisjoint(item.names))
    return replace(part, messages=tuple(messages), taken_back=taken_back), names - known


def store_part(db: Connection, part: PreparedPart, reading: SessionReading, *, with_actions: bool) -> PartResult:
    """Store a part within a transaction; queue the person's messages for capture, and the session for conclusions."""
    session_id, result = part.session.id, PartResult()
    is_incognito = agent_sessions.is_any_incognito(db, [session_id])
    _obey(db, part)
    if is_incognito:
        said = tuple(message for message in part.messages if message.is_resumed)
        result.left_out[INCOGNITO] += len(part.messages) - len(said) + len(part.actions)
        part = replace(part, messages=said, actions=())
    messages = _choose_messages(db, part, reading)
    actions = _choose_actions(db, part, reading) if with_actions else []
    result.left_out[NO_JOURNAL] += 0 if with_actions else len(part.actions)
    known = len(part.messages) - len(messages) + (len(part.actions) - len(actions) if with_actions else 0)
    result.left_out[KNOWN] += known
    messages = _drop_purged(db, messages, result)
    seqs = turns.add(db, [Message(session_id, message.role, message.content, message.at) for message in messages])
    # A person often takes back a message that they stopped at once, and repeats one that failed.
    queued = [
        seq
        for seq, message in zip(seqs, messages, strict=True)
        if message.role is Role.USER and not message.is_unanswered
    ]
    if queued:
        work.add(db, queued, READING, time.time())
    for action in actions:
        agent_sessions.add_action(db, action)
    if seqs:
        conclusions.request(db, [session_id], time.time())
    times = [*(message.at for message in messages), *(action.at for action in actions)]
    if reading.is_import and (times or not reading.is_stored):
        _put_session(db, part, reading, times)
    elif queued and part.name:
        agent_sessions.name_session(db, session_id, part.name, times[0])
    result.turns = list(zip(seqs, messages, strict=True))
    result.queued, result.actions = len(queued), len(actions)
    return result


def _obey(db: Connection, part: PreparedPart) -> None:
    """Obey what the user wanted saved: from now on nothing, again, or not the turn before."""
    session_id = part.session.id
    if part.mode is NoSave.SESSION:
        agent_sessions.begin_incognito(db, session_id, utc_now())
    elif part.mode is NoSave.RESUME:
        agent_sessions.end_incognito(db, session_id)
    if part.forgets_before and (last := turns.find_last_of_person(db, session_id)) is not None:
        turns.forget(db, [turn.seq for turn in turns.list_since(db, session_id, last)])


def _drop_purged(db: Connection, messages: list[PreparedMessage], result: PartResult) -> list[PreparedMessage]:
    """Return messages without those of which a sentence was purged: a reading must not bring it back."""
    if not refusals.has_purged(db):
        return messages
    remaining = [message for message in messages if RefusedBy.PURGED not in list_refusals(db, message.content)]
    result.left_out[PURGED] += len(messages) - len(remaining)
    return remaining


def list_refusals(db: Connection, content: str) -> set[RefusedBy]:
    """Return how a person refused a message or a part of it."""
    texts = {content}
    for line in content.splitlines():
        texts |= {line.strip(), *split_sentences(line), *split_typed_sentences(line)}
    found = (refusals.find(db, content_hash(text)) for text in texts if text)
    return {refusal.how for refusal in found if refusal is not None}


def _choose_messages(db: Connection, part: PreparedPart, reading: SessionReading) -> list[PreparedMessage]:
    before = session_archive.list_session_texts(db, part.session.id)
    if reading.messages.before is None and reading.resumes and reading.has_file and part.messages:
        # A file that was rewritten is read from its start in spite of the mark.
        reading.resumes = not before or part.messages[0].text_hash != before[0][0]
    copies = turns.find_copies(db, {message.text_hash for message in part.messages if message.at})
    keys = [(message.text_hash, message.at) for message in part.messages]
    new = _choose_new(keys, before, copies, reading.messages, resumes=reading.resumes)
    return [
        replace(message, at=_time_of(message, reading))
        for message, is_new in zip(part.messages, new, strict=True)
        if is_new
    ]


def _choose_actions(db: Connection, part: PreparedPart, reading: SessionReading) -> list[Action]:
    if not part.actions:
        return []
    actions = [prepared.action for prepared in part.actions]
    before = session_archive.list_session_actions(db, part.session.id)
    copies = session_archive.find_action_copies(db, {action.at for action in actions if action.at})
    keys = [((action.tool, action.target), action.at) for action in actions]
    new = _choose_new(keys, before, copies, reading.actions, resumes=reading.resumes)
    return [
        replace(action, at=_time_of(action, reading)) for action, is_new in zip(actions, new, strict=True) if is_new
    ]


def _time_of(item: PreparedMessage | Action, reading: SessionReading) -> str:
    reading.last_at = item.at or reading.last_at or reading.fallback_at
    return reading.last_at


def _choose_new(
    keys: Sequence[tuple[K, str]],
    before: Sequence[tuple[K, str]],
    copies: Iterable[tuple[K, str]],
    counts: _Counts[K],
    *,
    resumes: bool,
) -> list[bool]:
    """Return for each key and time whether it is new, given those of the session and the copies in all sessions."""
    if counts.before is None:
        counts.before = Counter(key for key, _ in before)
    stored, latest = {*before, *copies}, dict[K, str]()
    for key, at in before:
        latest[key] = max(at, latest.get(key, ""))
    chosen = []
    for key, at in keys:
        if not at:
            counts.read[key] += 1
            chosen.append(resumes or counts.read[key] > counts.before[key])
            continue
        chosen.append((key, at) not in stored and latest.get(key, "") < at)
        stored.add((key, at))
    return chosen


def _put_session(db: Connection, part: PreparedPart, reading: SessionReading, times: Sequence[str]) -> None:
    head = part.session
    started_at = head.started_at or min(times, default=reading.fallback_at)
    session_archive.put_session(
        db,
        ArchivedSession(
            *(head.id, head.agent, normalize_id(head.cwd), head.branch, part.name),
            started_at,
            max(times, default=started_at),
        ),
    )
    reading.is_stored = True
