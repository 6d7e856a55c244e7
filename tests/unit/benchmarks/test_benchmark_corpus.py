import statistics
from collections import Counter
from itertools import islice

import pytest

from benchmarks.corpus import fingerprint, memories
from benchmarks.questions import IDENTIFIER, LONGEST, UNANSWERABLE, questions
from benchmarks.templated_notes import TEMPLATES, templated_notes
from pipeline.kernel.records import Kind

SEED = 3
SIZE = 1500


@pytest.fixture(scope="module")
def corpus():
    return list(memories(SIZE, SEED))


@pytest.fixture(scope="module")
def sample_questions(corpus):
    return questions(corpus, 600, SEED)


def test_seed_gives_the_same_memories_for_any_count(corpus):
    assert list(memories(100, SEED)) == corpus[:100]
    assert list(memories(100, SEED + 1)) != corpus[:100]


def test_fingerprint_depends_on_the_corpus():
    assert fingerprint(SEED) == fingerprint(SEED)
    assert fingerprint(SEED) != fingerprint(SEED + 1)


def test_no_memory_is_there_twice(corpus):
    assert len({memory["content"] for memory in corpus}) == SIZE


def test_every_kind_is_one_that_the_store_takes(corpus):
    assert {memory["kind"] for memory in corpus} <= set(Kind)


def test_sessions_and_lengths_are_those_of_real_notes(corpus):
    turns = Counter(memory["session_id"] for memory in corpus).values()
    # The last session may have been cut off.
    assert all(8 <= count <= 40 for count in islice(turns, len(turns) - 1))
    lengths = [len(memory["content"].split()) for memory in corpus]
    assert 24 <= statistics.median(lengths) <= 32
    assert max(lengths) <= 130


def test_few_words_are_everywhere_and_most_are_rare(corpus):
    seen = Counter(word for memory in corpus for word in set(memory["content"].lower().split()))
    assert len(seen) > 3000
    assert statistics.median(seen.values()) <= 2


def test_questions_are_different_and_always_the_same(corpus, sample_questions):
    assert len({question.text for question in sample_questions}) == len(sample_questions) == 600
    assert questions(corpus, 600, SEED) == sample_questions
    assert all(2 <= len(question.text.split()) <= LONGEST for question in sample_questions)


def test_about_a_tenth_of_the_questions_has_no_answer(sample_questions):
    without = [question for question in sample_questions if not question.sources]
    assert 0.5 * UNANSWERABLE < len(without) / len(sample_questions) < 1.7 * UNANSWERABLE
    assert {question.kind for question in without} == {"none"}


def test_names_in_a_literal_question_are_in_its_source(corpus, sample_questions):
    literal = [question for question in sample_questions if question.kind == "literal"]
    named = [(name, question) for question in literal for name in IDENTIFIER.findall(question.text)]
    assert len(named) >= len(literal) > 0
    assert all(name in corpus[question.sources[0]]["content"] for name, question in named)


def test_small_corpus_yields_as_many_questions_as_possible(corpus):
    few = questions(corpus[:3], 100_000, SEED)
    assert len(few) < 100_000
    assert {place for question in few for place in question.sources} <= {0, 1, 2}


def test_templated_notes_are_distinct_and_the_same_for_a_seed():
    notes = list(templated_notes(SIZE, SEED))
    assert list(templated_notes(100, SEED)) == notes[:100]
    assert list(templated_notes(100, SEED + 1)) != notes[:100]
    assert len({note["content"] for note in notes}) == SIZE
    assert {note["kind"] for note in notes} <= set(Kind)
    assert len(TEMPLATES) == 40
    assert not any("{" in note["content"] for note in notes)
