"""Which results a prompt is shown, and how much of each."""

from dataclasses import replace

from pipeline.kernel.records.recall import Hit
from pipeline.prompt.sources.memories import choose_lines
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
