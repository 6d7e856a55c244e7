"""The cheap relation of a pair is the relation of the classifier, for labelled pairs, templated notes and any text."""

import json
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import example, given, settings, strategies as st

from benchmarks.templated_notes import templated_notes
from pipeline.features.dedup import stage as dedup
from pipeline.features.dedup.stage import relate_pair
from pipeline.text.similarity.comparable_text import (
    SHORT_CHARS,
    ComparableText,
    choose_rules,
    comparable_text,
    normalize_pair,
)
from pipeline.text.similarity.pair_classifier import (
    DENIAL_COSINE,
    MERGE_COSINE,
    PAIR_COSINE,
    REPLACEMENT_COSINE,
    Judgement,
    Relation,
    classify_pair,
)

PAIRS = json.loads((Path(__file__).parents[1] / "data" / "pairs.json").read_text(encoding="utf-8"))["pairs"]
COSINES = (0.3, REPLACEMENT_COSINE, 0.5, DENIAL_COSINE, 0.7, PAIR_COSINE, 0.85, MERGE_COSINE, 1.0)
VOCABULARY = """
    the a we I you is was are not never no to from of on in for and or by any either owned Ana Bob Redis Post gres
    postgres staging prod 3 30s 4 30 March 2026-01-02 v1.2 src/a.py KEY_X use uses used using stop start before after
    if when fast quick enable disable port timeout default name names prefix lives works lead who , . ? : : Decision
    кэш не 不 läuft nicht data base database log in login
"""
words = st.sampled_from(VOCABULARY.split())
statements = st.lists(words, min_size=1, max_size=14).map(" ".join)
cosines = st.sampled_from(COSINES)
openings = st.sampled_from(["", "Decision: ", "From now on, ", "In this project, ", "Note: "])


def without_reasons(judgement):
    return Judgement(Relation.DIFFERENT) if judgement.relation is Relation.DIFFERENT else judgement


def check(first, second, cosine):
    assert relate_pair(first, second, cosine) == without_reasons(classify_pair(first, second, cosine))


@st.composite
def edited_pairs(draw):
    """Two statements with the same words but for a few."""
    first = draw(st.lists(words, min_size=3, max_size=14))
    second = list(first)
    for _ in range(draw(st.integers(0, 3))):
        position = draw(st.integers(0, len(second) - 1))
        second[position : position + draw(st.integers(0, 2))] = draw(st.lists(words, max_size=2))
        second = second or ["x"]
    return draw(openings) + " ".join(first), draw(openings) + " ".join(second)


@pytest.mark.parametrize("cosine", COSINES)
def test_labelled_pairs_have_the_relation_of_the_classifier(cosine):
    for pair in PAIRS:
        check(pair["first"], pair["second"], cosine)
    for pair, other in pairwise(PAIRS):
        check(pair["first"], other["first"], cosine)


def test_templated_notes_have_the_relation_of_the_classifier():
    notes = sorted(note["content"] for note in templated_notes(1500, seed=11))
    for number in range(0, len(notes), 12):
        for first, second in combinations(notes[number : number + 12], 2):
            check(first, second, 0.7 if number % 24 else 0.95)


@settings(max_examples=400)
@given(edited_pairs(), cosines)
@example(("Redis Post gres port is 3", "Redis postgres port is 4"), 0.95)
@example(("Ana is owned by Bob", "Bob owned Ana"), 0.95)
@example(("Decision: we use the port 30 for Redis", "From now on, we use the port 4 for Redis"), 0.5)
def test_edited_statements_have_the_relation_of_the_classifier(pair, cosine):
    check(*pair, cosine)


@settings(max_examples=200)
@given(statements, statements, cosines)
def test_any_statements_have_the_relation_of_the_classifier(first, second, cosine):
    check(first, second, cosine)


@given(st.text(max_size=60), st.text(max_size=60), cosines)
def test_any_texts_have_the_relation_of_the_classifier(first, second, cosine):
    check(first, second, cosine)


def test_most_pairs_of_templated_notes_need_no_classification(monkeypatch):
    notes = sorted(note["content"] for note in templated_notes(400, seed=5))
    classified = []
    monkeypatch.setattr(dedup, "classify_pair", lambda *pair: classified.append(pair) or Judgement(Relation.DIFFERENT))
    pairs = [pair for start in range(0, 400, 10) for pair in combinations(notes[start : start + 10], 2)]
    for first, second in pairs:
        relate_pair(first, second, 0.9)
    assert len(classified) < 0.35 * len(pairs)


@given(edited_pairs())
def test_a_text_read_in_an_earlier_pair_is_normalized_as_a_new_one(pair):
    first, second = pair
    for other in ("Wir sichern die Datenbank nicht am Tag", "the cache is shared and used", second):
        normalize_pair(first, other)
    texts = ComparableText(first), ComparableText(second)
    coupled, english = choose_rules(*texts)
    assert normalize_pair(first, second) == tuple(text.normalize(coupled, english=english) for text in texts)


def test_forms_of_recent_texts_are_kept():
    short, long = "The port of the server is 8080.", "word " * SHORT_CHARS
    assert comparable_text(short) is comparable_text(short)
    assert comparable_text(long) is comparable_text(long)


marked_texts = st.tuples(openings, statements | st.text(min_size=1), st.sampled_from([".", "!"])).map("".join)


@given(marked_texts)
@example("Really?.")
@example("Decision: use 5 % of 3.")
@example("Remember.")
@example("The port is 5432 for now.")
@example("x\u2488.")
def test_a_text_without_its_final_mark_has_the_same_forms(text):
    """Both share an entry if nothing depends on the mark."""
    with_mark, without = ComparableText(text), ComparableText(text[:-1])
    if comparable_text(text) is not comparable_text(text[:-1]):
        assert not text[-2:-1].isalnum()
        return
    assert with_mark.bare == without.bare
    assert choose_rules(with_mark, without) == choose_rules(without, without)
    for english in (True, False):
        for coupled in (frozenset(), frozenset({"to", "by"}), with_mark.coupled):
            forms = [form.normalize(coupled, english=english) for form in (with_mark, without)]
            assert forms[0] == forms[1]


def test_a_text_and_its_form_without_a_mark_are_kept_once():
    notes = [note["content"].rstrip(".") for note in templated_notes(50, seed=12)]
    for note in notes:
        assert len({comparable_text(text) for text in (note, f"{note}.", f"{note}!")}) == 1
