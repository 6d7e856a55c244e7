"""Which results a prompt is shown, and how much of each."""

from dataclasses import replace

import pytest

from pipeline.context.prompt_lines import LEADING_CHARS, LONE_CHARS, choose_lines, excerpt_hits
from pipeline.recall.deadline import Deadline
from pipeline.records.recall import Hit
from tests.fakes.memories import PORT_DECISION


def hit(score, *, literal=0.0, content="note"):
    memory = replace(PORT_DECISION, content=content, seq=int(score * 1000), details={})
    return Hit(memory, score + literal, 0.9, literal_score=literal)


def test_an_identifier_does_not_silence_other_memories():
    quoted, near, far = hit(1.0, literal=2.0), hit(0.9), hit(0.3)
    assert choose_lines([quoted, near, far], [], "why does OPS-2004 fail") == [quoted, near]


def test_a_match_by_an_identifier_alone_is_shown_with_the_best():
    best, quoted = hit(1.0), hit(0.2, literal=1.0)
    assert choose_lines([best, quoted], [], "what of OPS-2004") == [quoted, best]


@pytest.mark.parametrize(("count", "chars"), [(1, LONE_CHARS), (2, LEADING_CHARS)])
def test_a_lone_memory_may_fill_the_block(count, chars):
    text = " ".join(
        f"Sentence number {number} says something new about parts of kind {number}." for number in range(24)
    )
    hits = [hit(1.0, content=text), hit(0.9, content="short")][:count]
    shown = excerpt_hits(hits, "what is said", Deadline(10_000), leads=True)
    assert chars / 2 < len(shown[0].excerpt) <= chars
