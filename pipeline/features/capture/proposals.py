"""Propose memories from a person's statements in a turn, sentence by sentence."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pipeline.features.capture.slots import Slot, find_slot, names_what_is_gone
from pipeline.features.capture.statement_ends import find_statement_end
from pipeline.kernel.records import CAPTURED_TAG, Draft, FactKey, Kind, Source
from pipeline.kernel.records.people import owner_of, personal_scope
from pipeline.kernel.store.turns import Role, Turn
from pipeline.sessions.orders.commands import read_line
from pipeline.sessions.statements import Label, Statement
from pipeline.text.normalize import shorten
from pipeline.text.own_words import list_own_lines
from pipeline.text.sentences import QUESTION_MARKS, says, split_typed_sentences

# Of a longer message, read the end (usually the request) and the start.
READ_CHARS = 6000
MOST_SENTENCES = 60
LONGEST_SENTENCE = 400
MIN_WORDS_PER_SENTENCE = 2
# Minimum probability that a sentence is lasting: lower for kinds that are rarely confused with work or small talk
# (decision 0081).
MIN_LASTING_PROBABILITY = 0.56
_BARS = {Label.FACT: 0.58, Label.DECISION: 0.54, Label.GOAL: 0.45}
# Minimum probability that a sentence is about the person rather than the project.
ABOUT_PERSON = 0.35
# A sentence that states a value in a known form needs less: "I moved to Metz last weekend" may look like narration.
MIN_STATED_PROBABILITY = 0.4
# Sentences with at least this probability are listed as considered.
MIN_NEAR_PROBABILITY = 0.3
MAX_PROPOSALS_PER_TURN = 5
MAX_AGREEING_CHARS = 200

_KINDS = {
    Label.PREFERENCE: (Kind.FACT, 0.6),
    Label.IDENTITY: (Kind.FACT, 0.6),
    Label.DECISION: (Kind.DECISION, 0.6),
    Label.CORRECTION: (Kind.LESSON, 0.6),
    Label.FACT: (Kind.FACT, 0.5),
    Label.RULE: (Kind.LESSON, 0.65),
    Label.DEADLINE: (Kind.FACT, 0.6),
    Label.GOAL: (Kind.GOAL, 0.6),
}
# The reason to keep a sentence that was not kept, and the reason against it.
_NAMES = {
    Label.NONE: "may matter later",
    Label.PREFERENCE: "may be a preference",
    Label.IDENTITY: "may say who you are",
    Label.DECISION: "may be a decision",
    Label.CORRECTION: "may be a correction",
    Label.FACT: "may be a fact about the project",
    Label.RULE: "may be a rule",
    Label.DEADLINE: "may be a deadline",
    Label.GOAL: "may be a goal",
}
_OTHERWISE = {
    Label.NONE: "small talk",
    Label.PREFERENCE: "a request for this answer",
    Label.IDENTITY: "a remark about the moment",
    Label.DECISION: "a proposal or a step of the work",
    Label.CORRECTION: "a remark about this change",
    Label.FACT: "an observation of the moment or a question",
    Label.RULE: "a task for now",
    Label.DEADLINE: "a plan for today",
    Label.GOAL: "a task for now",
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
    return list(_list_sentences(message))


# Each step of reading a message lists its sentences, and those of the agent's messages around it.
@lru_cache(8)
def _list_sentences(message: str) -> Sequence[str]:
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
    # Questions are no statements, nor is what introduces a text: "translate this for me:".
    stated = [sentence for sentence in keep_statements(long_enough) if not sentence.endswith((*QUESTION_MARKS, ":"))]
    return stated[-MOST_SENTENCES:]


def choose_lasting(statements: Iterable[Statement]) -> list[Statement]:
    """Return the statements that surely last, in order; of too many, the most certain."""
    lasting = [statement for statement in statements if _is_lasting(statement)]
    best = sorted(lasting, key=lambda statement: statement.lasts, reverse=True)[:MAX_PROPOSALS_PER_TURN]
    return [statement for statement in lasting if statement in best]


def _is_lasting(statement: Statement) -> bool:
    if statement.lasts >= _BARS.get(statement.label, MIN_LASTING_PROBABILITY):
        return True
    slot = find_slot(statement.sentence, {}) if statement.lasts >= MIN_STATED_PROBABILITY else None
    return slot is not None and slot.is_certain


def explain_dropped(statements: Iterable[Statement], chosen: Sequence[Statement]) -> Iterator[tuple[Statement, str]]:
    """Yield the statements that may last but were not chosen, each with the reason."""
    for statement in statements:
        if statement in chosen or statement.lasts < MIN_NEAR_PROBABILITY:
            continue
        if not _is_lasting(statement):
            yield statement, f"{_NAMES[statement.label]}, but reads more like {_OTHERWISE[statement.label]}"
        else:
            yield statement, f"{MAX_PROPOSALS_PER_TURN} clearer statements of the same message were kept"


def propose(
    turn: Turn, statements: Sequence[Statement], known: Mapping[FactKey, Any], *, personal: bool
) -> Iterator[Proposal]:
    """Yield a proposal for each statement of a turn; with `personal`, those about the person go to their store.

    `known` contains the current facts and their values.
    """
    assert turn.role is Role.USER
    for statement in statements:
        slot = find_slot(statement.sentence, known)
        # "I" in an agent's sentence is the agent.
        if slot is not None and slot.is_of_user and statement.agreed:
            slot = None
        if slot is not None and statement.label is Label.RULE and not slot.is_of_user:
            # "There is no broker any more, I switched it off for ever" sounds like a rule.
            slot = slot if slot.value is None and names_what_is_gone(statement.sentence) else None
        about_person = (slot is not None and slot.is_of_user) or (
            slot is None
            and statement.label in _OF_PERSON
            and statement.certainty >= ABOUT_PERSON
            and _OF_PROJECT.search(statement.sentence) is None
        )
        kind, importance = _KINDS[statement.label]
        end = find_statement_end(statement.sentence, turn.at)
        draft = Draft(
            content=statement.sentence,
            kind=kind,
            importance=importance,
            scope=personal_scope(owner_of(turn.session_id)) if about_person and personal else None,
            tags=(CAPTURED_TAG, statement.label),
            metadata={"turn": turn.seq, "certainty": round(statement.lasts, 3)}
            | ({"agreed": shorten(turn.content, MAX_AGREEING_CHARS)} if statement.agreed else {}),
            session_id=turn.session_id,
            source=Source.AMBIENT,
            occurred_at=turn.at,
            expires_at=None if kind is Kind.GOAL else end,
            details=_details(kind, statement.sentence, end),
        )
        yield Proposal(draft, slot, about_person)


def _details(kind: Kind, sentence: str, end: str | None) -> Mapping[str, Any]:
    match kind:
        case Kind.LESSON:
            return {"rule": sentence}
        case Kind.GOAL:
            # A goal that is not reached in time is still a goal.
            return {} if end is None else {"due_at": end}
        case _:
            return {}


def keep_statements(sentences: Iterable[str]) -> Iterator[str]:
    """Yield the sentences of a message that may state something.

    Hypotheses, wishes, roles, texts to write, people of examples and sarcasm state nothing.
    """
    of_earlier: str | None = None
    for sentence in sentences:
        text = sentence.replace("’", "'")
        if says("unstated", "roles", text):
            of_earlier = "of_role"
        elif says("unstated", "tasks", text):
            of_earlier = "of_example"
        elif of_earlier is not None and says("unstated", of_earlier, text):
            continue
        elif not (says("unstated", "imagined", text) or says("unstated", "sarcastic", text)):
            of_earlier = None
            yield sentence
