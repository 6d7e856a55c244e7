"""Keyed facts: `subject.attribute = value`, each value with the time in which it holds.

A key's values never overlap, and at each moment that holds which was told last of the time up to then. A new value ends
the one that holds at its beginning; one that arrives late ends where the next begins, where the one that it cuts short
was ended, or where that was told again and so holds again: the present stays what it is.
"""

import time
from dataclasses import dataclass, replace
from sqlite3 import Connection
from typing import Any

from ulid import ULID

from pipeline.errors import FieldError, InvalidField
from pipeline.records import UNSTORED, FactKey, Memory, Source, Stage, Trust
from pipeline.store import changes, facts, index_state, memories, work
from pipeline.text.names import MAX_NAME_CHARS, canonical_name
from pipeline.text.redaction import redact
from pipeline.text.tokens import memory_tokens
from pipeline.write.admission import DELIBERATE

UNTRUSTED = frozenset({Source.AMBIENT, Source.IMPORT, Source.SYNC})


@dataclass(frozen=True, slots=True)
class FactPlacement:
    """Where a fact goes in its key's history.

    `memory` is the fact with its end, `same` the one that says so already, `replaced` the one that it ends, `resumes`
    when that one holds again, if it does.
    """

    memory: Memory
    same: Memory | None = None
    replaced: Memory | None = None
    resumes: str | None = None


def fact_key(subject: str, attribute: str, loc: str = "") -> FactKey:
    """Return the canonical key; raise InvalidField for a name that has no letter or digit, or too many."""
    names = {}
    for field, given in (("subject", subject), ("attribute", attribute)):
        name = canonical_name(redact(given).text)
        if not name:
            raise InvalidField(FieldError(f"{loc}{field}", "must hold a letter or a digit"))
        if len(name) > MAX_NAME_CHARS:
            raise InvalidField(FieldError(f"{loc}{field}", f"must have at most {MAX_NAME_CHARS} characters"))
        names[field] = name
    return FactKey(**names)


def fact_text(key: FactKey, value: Any) -> str:
    """Return a fact as a line that words and vectors can find, without secrets."""
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    return redact(f"{_spoken(key.subject)} {_spoken(key.attribute)}: {shown}").text


def safe_value(key: FactKey, value: Any) -> Any:
    """Return a value as it may be stored: one that its own attribute gives away as a secret is none any more."""
    if isinstance(value, bool):
        return value
    start = f"{_spoken(key.subject)} {_spoken(key.attribute)}: "
    text = fact_text(key, value)
    told = text.removeprefix(start) if text.startswith(start) else redact(str(value)).text
    # A number stays one unless it is a secret.
    return value if told == str(value) else told


def place_fact(db: Connection, memory: Memory) -> FactPlacement:
    """Say where a fact goes; nothing is changed yet."""
    key, begins = memory.key, memory.valid_from
    assert key is not None
    assert begins is not None
    holder = facts.find_holding(db, key, memory.scope, begins)
    if holder is not None and _same_value(holder, memory):
        return FactPlacement(memory, same=holder)
    following = facts.after(db, key, memory.scope, begins)
    resumes = None if holder is None else _first_repetition(db, holder, begins, memory.source)
    ends = _earliest(
        memory.valid_to,
        None if following is None else following.valid_from,
        None if holder is None else holder.valid_to,
        resumes,
    )
    return FactPlacement(replace(memory, valid_to=ends), replaced=holder, resumes=resumes)


def end_replaced_fact(db: Connection, place: FactPlacement, at: str) -> None:
    """Let the fact before end where the new one begins, and hold again where it was told again."""
    if place.replaced is not None:
        assert place.memory.valid_from is not None
        _cut(db, place.replaced, place.memory.valid_from, place.resumes, at)


def end_at(db: Connection, holder: Memory, moment: str, at: str) -> None:
    """Let a fact end at a moment because a person says so, and hold again where it was told again."""
    _cut(db, holder, moment, _first_repetition(db, holder, moment, Source.USER), at)


def fit_between(db: Connection, fact: Memory, at: str) -> Memory | None:
    """Let a fact that comes in from review or the archive hold until the next begins; return the one that it ends."""
    assert fact.key is not None
    assert fact.valid_from is not None
    if fact.valid_from == fact.valid_to:
        # It was replaced where it began, so it holds at no moment and ends nothing.
        return None
    holder = facts.find_other_holding(db, fact)
    following = facts.after(db, fact.key, fact.scope, fact.valid_from)
    resumes = None
    if holder is not None:
        resumes = _first_repetition(db, holder, fact.valid_from, fact.source)
        _cut(db, holder, fact.valid_from, resumes, at)
    ends = _earliest(
        fact.valid_to,
        None if following is None else following.valid_from,
        None if holder is None else holder.valid_to,
        resumes,
    )
    facts.close(db, fact.seq, ends, at)
    return holder


def denies_fact(db: Connection, content: str, source: Source, moment: str) -> bool:
    """Return whether a text names a current fact's subject and attribute but not its value.

    By spelling alone, and only for what nobody wrote on purpose: admission has no model.
    """
    if source in DELIBERATE:
        return False
    text = content.casefold()
    return any(
        _spoken(fact.key.subject) in text and str(fact.details.get("value", "")).casefold() not in text
        for fact in facts.find_named_in(db, text, moment)
        if fact.key is not None
    )


def overrides_trusted(place: FactPlacement, source: Source) -> bool:
    """Return whether a source that nobody vouches for would end what a person or an agent said."""
    ended = place.replaced
    # A person who said it too vouches for what an import said first.
    vouched = ended is not None and (ended.source not in UNTRUSTED or ended.trust is Trust.TRUSTED)
    return source in UNTRUSTED and vouched


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def _same_value(fact: Memory, memory: Memory) -> bool:
    # Python takes True for 1, and 1 for 1.0.
    one, other = fact.details.get("value"), memory.details.get("value")
    return type(one) is type(other) and one == other


def _earliest(*moments: str | None) -> str | None:
    return min((moment for moment in moments if moment is not None), default=None)


def _first_repetition(db: Connection, fact: Memory, after: str, by: Source) -> str | None:
    """Return when a fact was first told again after a moment in its time, by anyone who may end what `by` says."""
    for moment, source in facts.repeats(db, fact, after):
        if by in UNTRUSTED or Source(source) not in UNTRUSTED:
            return moment
    return None


def _cut(db: Connection, fact: Memory, ends: str, resumes: str | None, at: str) -> None:
    facts.close(db, fact.seq, ends, at)
    if resumes is None:
        return
    again = replace(fact, seq=UNSTORED, id=str(ULID()), created_at=at, occurred_at=resumes, valid_from=resumes)
    again = replace(again, recall_count=0, merge_count=0)
    seq = memories.insert(db, again)
    facts.move_repeats(db, fact.seq, seq, resumes)
    number = changes.append(db, changes.CREATE, [again.id])
    index_state.put_tokens(db, seq, memory_tokens(again.content, resumes), number)
    work.add(db, [seq], (Stage.EMBED, Stage.ENTITIES), time.time())
