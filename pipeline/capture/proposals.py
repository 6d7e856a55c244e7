"""Propose memories from a person's statements in a turn, sentence by sentence."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.capture.commands import read_line
from pipeline.capture.endings import names_what_is_gone
from pipeline.capture.slots import Slot, find_slot
from pipeline.capture.statement_ends import find_statement_end
from pipeline.capture.statements import Label, Statement
from pipeline.capture.unstated import keep_statements
from pipeline.records import CAPTURED_TAG, Draft, FactKey, Kind, Source
from pipeline.records.people import owner_of, personal_scope
from pipeline.store.turns import Role, Turn
from pipeline.text.own_words import list_own_lines
from pipeline.text.sentences import split_typed_sentences

# Of a longer message, read the end (usually the request) and the start.
READ_CHARS = 6000
MOST_SENTENCES = 60
LONGEST_SENTENCE = 400
MIN_WORDS_PER_SENTENCE = 2
# Minimum probabilities that a sentence is lasting, and that it is about the person rather than the project.
MIN_LASTING_PROBABILITY = 0.6
ABOUT_PERSON = 0.35
# A sentence that states a value in a known form needs less: "I moved to Metz last weekend" may look like narration.
MIN_STATED_PROBABILITY = 0.4
# Sentences with at least this probability are listed as considered.
MIN_NEAR_PROBABILITY = 0.4
MAX_PROPOSALS_PER_TURN = 5

_KINDS = {
    Label.PREFERENCE: (Kind.FACT, 0.6),
    Label.IDENTITY: (Kind.FACT, 0.6),
    Label.DECISION: (Kind.DECISION, 0.6),
    Label.CORRECTION: (Kind.LESSON, 0.6),
    Label.FACT: (Kind.FACT, 0.5),
    Label.RULE: (Kind.LESSON, 0.65),
    Label.DEADLINE: (Kind.FACT, 0.6),
}
_OF_PERSON = frozenset({Label.PREFERENCE, Label.IDENTITY})
# Closed classes in the languages of the examples: statements in the name of a project are not about the person.
_OF_PROJECT = re.compile(
    r"\b(?:we|our|us|this (?:repo\w*|project|codebase|branch)|wir|unser\w*|uns|(?:in )?diese[mns]? (?:repo\w*|projekt)|"
    r"nosotr[oa]s|nuestr\w+|aquí|este (?:repo\w*|proyecto)|nous|notre|nos|on|ce (?:dépôt|projet|repo))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed memory: its draft, and whether it is about the person rather than the workspace."""

    draft: Draft
    slot: Slot | None
    about_person: bool


def list_sentences(message: str) -> list[str]:
    """List the sentences of a message in the person's own words, without commands."""
    text = "\n".join(list_own_lines(message))
    if len(text) > READ_CHARS:
        half = READ_CHARS // 2
        text = f"{text[:half]}\n{text[-half:]}"
    lines = [read_line(line)[1] for line in text.splitlines()]
    sentences = [sentence.lstrip("-*• ").strip() for line in lines for sentence in split_typed_sentences(line)]
    long_enough = [
        sentence
        for sentence in sentences
        if sum(any(map(str.isalnum, word)) for word in sentence.split()) >= MIN_WORDS_PER_SENTENCE
        and len(sentence) <= LONGEST_SENTENCE
    ]
    # Questions are no statements.
    stated = [sentence for sentence in keep_statements(long_enough) if not sentence.endswith(("?", "？"))]
    return stated[-MOST_SENTENCES:]


def choose_lasting(statements: Iterable[Statement]) -> list[Statement]:
    """Return the statements that surely last, in order; of too many, the most certain."""
    lasting = [statement for statement in statements if _is_lasting(statement)]
    best = sorted(lasting, key=lambda statement: statement.lasts, reverse=True)[:MAX_PROPOSALS_PER_TURN]
    return [statement for statement in lasting if statement in best]


def _is_lasting(statement: Statement) -> bool:
    if statement.lasts >= MIN_LASTING_PROBABILITY:
        return True
    slot = find_slot(statement.sentence, {}) if statement.lasts >= MIN_STATED_PROBABILITY else None
    return slot is not None and slot.is_certain


def explain_dropped(statements: Iterable[Statement], chosen: Sequence[Statement]) -> Iterator[tuple[Statement, str]]:
    """Yield the statements that may last but were not chosen, each with the reason."""
    for statement in statements:
        if statement in chosen or statement.lasts < MIN_NEAR_PROBABILITY:
            continue
        if not _is_lasting(statement):
            probability = f"probability {statement.lasts:.2f} that it matters later"
            yield statement, f"{probability}; {MIN_LASTING_PROBABILITY} is needed"
        else:
            yield statement, f"{MAX_PROPOSALS_PER_TURN} other statements of the turn are more certain"


def _ends_facts(statement: Statement, slot: Slot) -> bool:
    # "There is no broker any more, I switched it off for ever" sounds like a rule.
    return slot.value is None and names_what_is_gone(statement.sentence)


def propose(
    turn: Turn, statements: Sequence[Statement], known: Mapping[FactKey, Any], *, personal: bool
) -> Iterator[Proposal]:
    """Yield a proposal for each statement of a turn; with `personal`, those about the person go to their store.

    `known` contains the current facts and their values.
    """
    assert turn.role is Role.USER
    for statement in statements:
        slot = find_slot(statement.sentence, known)
        if slot is not None and statement.label is Label.RULE and not (slot.is_of_user or _ends_facts(statement, slot)):
            slot = None
        about_person = (slot is not None and slot.is_of_user) or (
            slot is None
            and statement.label in _OF_PERSON
            and statement.certainty >= ABOUT_PERSON
            and _OF_PROJECT.search(statement.sentence) is None
        )
        kind, importance = _KINDS[statement.label]
        draft = Draft(
            content=statement.sentence,
            kind=kind,
            importance=importance,
            scope=personal_scope(owner_of(turn.session_id)) if about_person and personal else None,
            tags=(CAPTURED_TAG, statement.label),
            metadata={"turn": turn.seq, "certainty": round(statement.lasts, 3)},
            session_id=turn.session_id,
            source=Source.AMBIENT,
            occurred_at=turn.at,
            expires_at=find_statement_end(statement.sentence, turn.at),
            details={"rule": statement.sentence} if kind is Kind.LESSON else {},
        )
        yield Proposal(draft, slot, about_person)
