"""Keyed facts: `subject.attribute = value`, each value with the period in which it is valid.

The periods of a key's values never overlap, and at each time the value is valid that was stated last before it. A new
value ends the value that is valid at its start. A value that arrives late ends at the start of the next value, at the
end of the value that it shortens, or when that value was stated again: the present stays unchanged.
"""

import time
from dataclasses import dataclass, replace
from sqlite3 import Connection
from typing import Any

from ulid import ULID

from pipeline.kernel.errors import FieldError, InvalidField
from pipeline.kernel.records import UNSTORED, FactKey, Memory, Source, Stage, Trust
from pipeline.kernel.store import changes, facts, index_state, memories, work
from pipeline.text.memory_terms import memory_terms
from pipeline.text.names import MAX_NAME_CHARS, canonical_name
from pipeline.text.redaction import redact
from pipeline.write.admission import DELIBERATE

UNTRUSTED = frozenset({Source.AMBIENT, Source.IMPORT, Source.SYNC})


@dataclass(frozen=True, slots=True)
class FactPlacement:
    """The position of a fact in its key's history.

    `memory` is the fact with its end, `same` an existing fact with the same value, `replaced` the fact that it ends,
    `resumes` the time from which the replaced fact is valid again, if any.
    """

    memory: Memory
    same: Memory | None = None
    replaced: Memory | None = None
    resumes: str | None = None


def fact_key(subject: str, attribute: str, loc: str = "") -> FactKey:
    """Return the canonical key; raise InvalidField for a name without letters or digits, or a name that is too long."""
    names = {}
    for field, raw_name in (("subject", subject), ("attribute", attribute)):
        name = canonical_name(redact(raw_name).text)
        if not name:
            raise InvalidField(FieldError(f"{loc}{field}", "must contain a letter or a digit"))
        if len(name) > MAX_NAME_CHARS:
            raise InvalidField(FieldError(f"{loc}{field}", f"must have at most {MAX_NAME_CHARS} characters"))
        names[field] = name
    return FactKey(**names)


def fact_text(key: FactKey, value: Any) -> str:
    """Return a fact as a line of text for the indexes, without secrets."""
    value_text = str(value).lower() if isinstance(value, bool) else str(value)
    return redact(f"{_spoken(key.subject)} {_spoken(key.attribute)}: {value_text}").text


def safe_value(key: FactKey, value: Any) -> Any:
    """Return a value as it may be stored: redacted if the attribute's name marks it as a secret."""
    if isinstance(value, bool):
        return value
    start = f"{_spoken(key.subject)} {_spoken(key.attribute)}: "
    text = fact_text(key, value)
    redacted = text.removeprefix(start) if text.startswith(start) else redact(str(value)).text
    # A number stays a number unless it is a secret.
    return value if redacted == str(value) else redacted


def place_fact(db: Connection, memory: Memory) -> FactPlacement:
    """Return the position of a fact in its key's history, without changing anything."""
    key, begins = memory.key, memory.valid_from
    assert key is not None
    assert begins is not None
    holder = facts.find_valid(db, key, memory.scope, begins)
    if holder is not None and _same_value(holder, memory):
        return FactPlacement(memory, same=holder)
    ends, resumes = _find_end(db, memory, holder)
    return FactPlacement(replace(memory, valid_to=ends), replaced=holder, resumes=resumes)


def end_replaced_fact(db: Connection, placement: FactPlacement, at: str) -> None:
    """End the previous fact at the start of the new one, and reopen it where it was stated again."""
    if placement.replaced is not None:
        assert placement.memory.valid_from is not None
        _cut(db, placement.replaced, placement.memory.valid_from, placement.resumes, at)


def end_at(db: Connection, holder: Memory, moment: str, at: str) -> None:
    """End a fact at a time at a person's request, and reopen it where it was stated again."""
    _cut(db, holder, moment, _first_repetition(db, holder, moment, Source.USER), at)


def end_before_next(db: Connection, fact: Memory, at: str) -> Memory | None:
    """End a fact from review or the archive at the start of the next fact; return the fact that it ends."""
    assert fact.valid_from is not None
    if fact.valid_from == fact.valid_to:
        # It was replaced at its start, so it is never valid and ends nothing.
        return None
    holder = facts.find_other_valid(db, fact)
    ends, resumes = _find_end(db, fact, holder)
    if holder is not None:
        _cut(db, holder, fact.valid_from, resumes, at)
    facts.close(db, fact.seq, ends, at)
    return holder


def denies_fact(db: Connection, content: str, source: Source, moment: str) -> bool:
    """Return whether a text names a current fact's subject and attribute but not its value.

    Compares spelling only, and only for automatic captures: admission has no model.
    """
    if source in DELIBERATE:
        return False
    text = content.casefold()
    return any(
        _spoken(fact.key.subject) in text and str(fact.details.get("value", "")).casefold() not in text
        for fact in facts.find_named_in(db, text, moment)
        if fact.key is not None
    )


def overrides_trusted(placement: FactPlacement, source: Source) -> bool:
    """Return whether an untrusted source would end the statement of a person or an agent."""
    ended = placement.replaced
    # If a person repeated an imported fact, the person confirmed it.
    vouched = ended is not None and (ended.source not in UNTRUSTED or ended.trust is Trust.TRUSTED)
    return source in UNTRUSTED and vouched


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def _same_value(fact: Memory, memory: Memory) -> bool:
    # Python treats True and 1, and 1 and 1.0, as equal.
    value, other_value = fact.details.get("value"), memory.details.get("value")
    return type(value) is type(other_value) and value == other_value


def _find_end(db: Connection, fact: Memory, holder: Memory | None) -> tuple[str | None, str | None]:
    """Return when a fact ends in its key's history, and when the fact that it replaces is valid again."""
    assert fact.key is not None
    assert fact.valid_from is not None
    following = facts.after(db, fact.key, fact.scope, fact.valid_from)
    resumes = None if holder is None else _first_repetition(db, holder, fact.valid_from, fact.source)
    ends = [fact.valid_to, resumes]
    ends += [] if following is None else [following.valid_from]
    ends += [] if holder is None else [holder.valid_to]
    return min((end for end in ends if end is not None), default=None), resumes


def _first_repetition(db: Connection, fact: Memory, after: str, by: Source) -> str | None:
    """Return when a fact was first stated again after a time in its period, by a source that may override `by`."""
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
    index_state.put_tokens(db, seq, memory_terms(again), number)
    work.add(db, [seq], (Stage.EMBED, Stage.ENTITIES), time.time())
