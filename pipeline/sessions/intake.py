"""Store prepared parts of sessions in a workspace, each message and action once.

A message is known if a session has its text at its time: forks and resumed sessions copy records. It is also known if
a hook delivered it to its session later than it was said. Transcripts without times are compared by number: of two
equal messages, the second is new if only one is stored.
"""

import time
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from sqlite3 import Connection
from typing import Generic, TypeVar

from pipeline.capture.nosave import NoSave
from pipeline.records.digestion import READING
from pipeline.sessions.prepare import PreparedMessage, PreparedPart
from pipeline.store import agent_sessions, refusals, session_archive, turns, work
from pipeline.store.agent_sessions import Action
from pipeline.store.refusals import RefusedBy
from pipeline.store.session_archive import ArchivedSession
from pipeline.store.turns import Message, Role
from pipeline.text.normalize import content_hash, normalize_id
from pipeline.text.sentences import split_sentences, split_typed_sentences
from pipeline.times import utc_now

K = TypeVar("K", bound=Hashable)

# Why something is not stored.
KNOWN = "already stored"
INCOGNITO = "incognito session"
PURGED = "purged text"
NO_JOURNAL = "the journal is off in this project"


@dataclass(slots=True)
class _Known(Generic[K]):
    """What a session had before a reading, what was read without a time, and which delivered items were read."""

    before: Counter[K] | None = None
    read: Counter[K] = field(default_factory=Counter)
    matched: set[tuple[K, str]] = field(default_factory=set)


@dataclass(slots=True)
class SessionReading:
    """A session during the reading of its file.

    `resumes` is whether the reader started after a mark; `last_at` is the time of the last entry.
    """

    fallback_at: str
    resumes: bool
    is_stored: bool = False
    last_at: str = ""
    messages: _Known[int] = field(default_factory=_Known)
    actions: _Known[tuple[str, str]] = field(default_factory=_Known)


@dataclass(slots=True)
class PartResult:
    """What was stored of a part."""

    turns: int = 0
    queued: int = 0
    actions: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


def store_part(
    db: Connection, part: PreparedPart, reading: SessionReading, *, with_actions: bool, on_end: "list[int]"
) -> PartResult:
    """Store a part within a transaction, and queue the user's messages for capture.

    Adds the row number of the last stored message to `on_end`.
    """
    session_id, result = part.session.id, PartResult()
    is_incognito = agent_sessions.is_any_incognito(db, [session_id])
    _obey(db, part)
    if is_incognito:
        result.left_out[INCOGNITO] += len(part.messages) + len(part.actions)
        return result
    messages = _choose_messages(db, part, reading)
    actions = _choose_actions(db, part, reading) if with_actions else []
    result.left_out[NO_JOURNAL] += 0 if with_actions else len(part.actions)
    known = len(part.messages) - len(messages) + (len(part.actions) - len(actions) if with_actions else 0)
    result.left_out[KNOWN] += known
    messages = _drop_purged(db, messages, result)
    seqs = turns.add(db, messages)
    queued = [seq for seq, message in zip(seqs, messages, strict=True) if message.role is Role.USER]
    if queued:
        work.add(db, queued, READING, time.time())
    for action in actions:
        agent_sessions.add_action(db, action)
    times = [*(message.at for message in messages), *(action.at for action in actions)]
    if times or not reading.is_stored:
        _put_session(db, part, reading, times)
    on_end += seqs[-1:]
    result.turns, result.queued, result.actions = len(messages), len(queued), len(actions)
    return result


def _obey(db: Connection, part: PreparedPart) -> None:
    """Obey what the user wanted saved: from now on nothing, again, or not the turn before."""
    session_id = part.session.id
    if part.mode is NoSave.SESSION:
        agent_sessions.begin_incognito(db, session_id, utc_now())
    elif part.mode is NoSave.RESUME:
        agent_sessions.end_incognito(db, session_id)
    if part.forgets_before and (last := turns.find_last_of_person(db, session_id)) is not None:
        turns.forget(db, [turn.seq for turn in turns.list_since(db, session_id, last.seq)])


def _drop_purged(db: Connection, messages: list[Message], result: PartResult) -> list[Message]:
    """Return messages without those of which a sentence was purged: an import must not bring it back."""
    if not refusals.has_purged(db):
        return messages
    remaining = [message for message in messages if not _is_purged(db, message.content)]
    result.left_out[PURGED] += len(messages) - len(remaining)
    return remaining


def _is_purged(db: Connection, content: str) -> bool:
    return RefusedBy.PURGED in list_refusals(db, content)


def list_refusals(db: Connection, content: str) -> set[RefusedBy]:
    """Return how a person refused a message or a part of it."""
    texts = {content}
    for line in content.splitlines():
        texts |= {line.strip(), *split_sentences(line), *split_typed_sentences(line)}
    found = (refusals.find(db, content_hash(text)) for text in texts if text)
    return {refusal.how for refusal in found if refusal is not None}


def _choose_messages(db: Connection, part: PreparedPart, reading: SessionReading) -> list[Message]:
    session_id, before = part.session.id, session_archive.list_session_texts(db, part.session.id)
    if reading.messages.before is None and reading.resumes and part.messages:
        # A file that was rewritten is read from its start in spite of the mark.
        reading.resumes = not before or part.messages[0].text_hash != before[0][0]
    copies = turns.find_copies(db, {message.text_hash for message in part.messages if message.at})
    keys = [(message.text_hash, message.at) for message in part.messages]
    new = _choose_new(keys, before, copies, reading.messages, resumes=reading.resumes)
    return [
        Message(session_id, message.role, message.content, _time_of(message, reading))
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
    known: _Known[K],
    *,
    resumes: bool,
) -> list[bool]:
    """Return for each key and time whether it is new, given those of the session and the copies in all sessions."""
    if known.before is None:
        known.before = Counter(key for key, _ in before)
    stored, own = {*before, *copies}, {*keys, *known.matched}
    delivered: dict[K, list[str]] = {}
    for key, at in before:
        if (key, at) not in own:
            delivered.setdefault(key, []).append(at)
    chosen = []
    for key, at in keys:
        if not at:
            known.read[key] += 1
            chosen.append(resumes or known.read[key] > known.before[key])
            continue
        is_new = (key, at) not in stored
        if is_new and (later := _take_later(delivered.get(key, []), at)) is not None:
            known.matched.add((key, later))
            is_new = False
        stored.add((key, at))
        chosen.append(is_new)
    return chosen


def _take_later(times: list[str], at: str) -> str | None:
    """Remove and return the first time that is not before another one, None if there is none."""
    later = next((each for each in times if each >= at), None)
    if later is not None:
        times.remove(later)
    return later


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
