"""Find the statement that an exchange settles: the person says "make it 8", and the agent says what is 8 now."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from sqlite3 import Connection
from typing import Final

from pipeline.features.capture.change_pairs import settle_value
from pipeline.features.capture.proposals import list_sentences
from pipeline.kernel.store import turns
from pipeline.kernel.store.turns import Turn
from pipeline.sessions.statements import AGENT_MARK, Label, Statement
from pipeline.text.own_words import list_own_lines
from pipeline.text.sentences import QUESTION_MARKS

# A longer message says itself what it means, and a longer confirmation asks for work.
MOST_WORDS: Final = 16
MOST_CONFIRMING_WORDS: Final = 8
MOST_ANSWERS: Final = 2
# "make it 2" gives a value to one of so many sentences before it.
FURTHEST_VALUE: Final = 2
# A confirmed sentence must repeat at least so many words of the agent's proposal.
LEAST_SHARED: Final = 2
MIN_SETTLED_PROBABILITY: Final = 0.55
# Below this probability of lasting, no sentence of a message decides anything by its own words.
MIN_STATING_PROBABILITY: Final = 0.4
# Above this share of words, the agent only repeats what the person said.
MOST_REPEATED: Final = 0.6
_TERM = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d][\w-]{3,}")


@dataclass(frozen=True, slots=True)
class Exchange:
    """A message of the person with the agent's messages before and after it."""

    before: str
    turn: Turn
    after: str

    @classmethod
    def read(cls, db: Connection, turn: Turn) -> "Exchange":
        """Read what the agent said before a message of the person and after it."""
        before, after = turns.find_before(db, turn), turns.find_answer(db, turn)
        return cls("" if before is None else before.content, turn, "" if after is None else after.content)


def settle_values(sentences: Sequence[str]) -> list[str]:
    """Return the sentences of a message, each with the value that a later one gives it: "3 years. No, make it 2"."""
    settled: list[str] = []
    for sentence in sentences:
        for place in reversed(range(max(0, len(settled) - FURTHEST_VALUE), len(settled))):
            if (stated := settle_value(sentence, settled[place])) is not None:
                settled[place] = stated
                break
        else:
            settled.append(sentence)
    return settled


def find_settled(
    exchange: Exchange,
    said: Sequence[Statement],
    kept: Sequence[Statement],
    classify: Callable[[Sequence[str]], Sequence[Statement]],
) -> list[Statement]:
    """Return the sentence of the agent that says what a short message decides, unless the person said it whole.

    `said` are the sentences of the message, `kept` those of them that last.
    """
    states = any(statement.lasts >= MIN_STATING_PROBABILITY for statement in said)
    answers = [answer for answer in _list_answers(exchange, states) if not _repeats(answer, kept)]
    weighed = classify([f"{AGENT_MARK}{answer}" for answer in answers])
    settled = [
        # The agent states no preference of its own.
        replace(
            statement,
            sentence=answer,
            label=statement.label if statement.label in (Label.RULE, Label.DECISION) else Label.FACT,
            agreed=True,
        )
        for answer, statement in zip(answers, weighed, strict=True)
        if statement.lasts >= MIN_SETTLED_PROBABILITY
    ]
    return sorted(settled, key=lambda statement: -statement.lasts)[:1]


def drop_settled(kept: Sequence[Statement], settled: Sequence[Statement]) -> list[Statement]:
    """Drop the short sentences of the person that a settled statement says whole."""
    said_whole = {number for statement in settled for number in _numbers(statement.sentence)}
    return [
        statement
        for statement in kept
        if not (_numbers(statement.sentence) & said_whole and len(_terms(statement.sentence)) <= MOST_CONFIRMING_WORDS)
    ]


def _list_answers(exchange: Exchange, states: bool) -> list[str]:
    """Return the sentences after a message that repeat its numbers, its words, or the proposal that it confirms."""
    said = " ".join(list_own_lines(exchange.turn.content))
    words = len(said.split())
    if not 0 < words <= MOST_WORDS:
        return []
    answers = list_sentences(exchange.after)[:MOST_ANSWERS]
    named, numbers = _terms(said), _numbers(said)
    if numbers:
        return [answer for answer in answers if _numbers(answer) & numbers]
    if words > MOST_CONFIRMING_WORDS or said.endswith(QUESTION_MARKS):
        return []
    proposed = _terms(exchange.before)
    return [
        answer
        for answer in answers
        # A number that nobody named is a result, not what the person decided.
        if _numbers(answer) <= proposed
        and ((states and _terms(answer) & named) or _numbers(answer) or len(_terms(answer) & proposed) >= LEAST_SHARED)
    ]


def _repeats(answer: str, kept: Sequence[Statement]) -> bool:
    terms = _terms(answer)
    said = {term for statement in kept for term in _terms(statement.sentence)}
    return len(terms & said) > MOST_REPEATED * len(terms)


def _terms(text: str) -> set[str]:
    return {term.lower() for term in _TERM.findall(text)}


def _numbers(text: str) -> set[str]:
    return {term for term in _terms(text) if term[0].isdigit()}
