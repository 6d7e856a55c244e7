import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from pipeline.recall.rank import rank, rank_newest_first
from pipeline.recall.relevance import (
    CLOSE_TO_ENGLISH,
    CLOSE_TO_FOREIGN,
    IRRELEVANT,
    LONG_MEMORY_TOKENS,
    LONG_PROMPT_WORDS,
    RELEVANT,
    calibrate,
    closeness,
    fitted,
    is_relevant,
    least_relevance,
    may_be_relevant,
    needs_relevance,
    relevance,
)
from tests.fakes.evidence import evidence, in_session


@given(st.lists(st.tuples(st.floats(-1, 1, width=32), st.floats(0, 1, width=32)), max_size=6))
def test_relevance_is_a_probability_for_any_evidence(pairs):
    dense, words = [d for d, _ in pairs], [w for _, w in pairs]
    found = relevance(rank(evidence(range(1, len(pairs) + 1), dense=dense, lexical=words, ceiling=1.0)))
    assert len(found) == len(pairs)
    assert all(0 <= probability <= 1 for probability in found.tolist())


@pytest.mark.parametrize("ceiling", [0.0, 5.0])
def test_no_evidence_is_silence(ceiling):
    found = relevance(rank(evidence([1, 2], dense=[0.0, -0.3], ceiling=ceiling)))
    assert (found < RELEVANT).all()


def test_an_answer_is_as_probable_as_the_question_that_it_answers():
    found = relevance(rank(evidence(**in_session([1, 2, 3]), dense=[0.8, 0.0, 0.0])))
    assert found[1] == found[0] > RELEVANT > found[2]


@pytest.mark.parametrize(("known", "least"), [(0.0, 0.0), (0.4, 0.0), (0.55, calibrate(0.005)), (1.0, IRRELEVANT)])
def test_the_bar_is_lower_if_the_workspace_contains_few_of_the_words(known, least):
    asked = evidence([1], vocabulary_coverage=known)
    assert least_relevance(asked, "which port", None) == pytest.approx(least)
    assert least_relevance(asked, "which port", 0.3) == 0.3
    assert least_relevance(asked, "which port", 0.0) == 0.0


@pytest.mark.parametrize(("asked", "least"), [(None, RELEVANT), (0.0, 0.0), (0.3, 0.3)])
def test_only_a_relevant_memory_answers_thanks(asked, least):
    assert least_relevance(evidence([1], vocabulary_coverage=1.0), "thanks, that looks great", asked) == least


GERMAN = "Die Rechnungen werden mit WeasyPrint erzeugt und nicht gespeichert"
ENGLISH = "Billing listens on port 8123"
FAR = min(CLOSE_TO_ENGLISH, CLOSE_TO_FOREIGN) - 0.01


@pytest.mark.parametrize("query", ["what is the capital of Mongolia", "ok, please go ahead", "port?", "ok", "ls -la"])
def test_unknown_words_lower_the_bar_only_between_languages(query):
    assert needs_relevance(query, ENGLISH, 0.0, None, 0.0) == IRRELEVANT
    assert needs_relevance(query, GERMAN, 0.0, None, 0.0) == 0.0
    assert needs_relevance(query, ENGLISH, 0.0, 0.0, FAR) == 0.0


@pytest.mark.parametrize(
    "query", ["Auf welchem Port läuft die Datenbank?", "¿en qué puerto está la base?", "на каком порту"]
)
def test_a_question_in_another_language_lowers_the_bar(query):
    assert needs_relevance(query, ENGLISH, 0.0, None, 0.0) == 0.0


@pytest.mark.parametrize("content", [ENGLISH, GERMAN])
@pytest.mark.parametrize("query", ["how tall is Mount Everest", "Wie hoch ist der Mount Everest?", "il pleut encore"])
@pytest.mark.parametrize("close", [FAR, -math.inf])
def test_a_memory_that_is_further_than_the_background_has_no_lower_bar(query, content, close):
    assert needs_relevance(query, content, 0.0, None, close) == IRRELEVANT
    assert needs_relevance(query, content, 0.0, 0.0, close) == 0.0


def test_turn_is_as_close_as_its_neighbor():
    ranking = rank(evidence(**in_session([1, 2, 3]), dense=[0.4, 0.0, 0.0], background_similarity=0.3))
    assert closeness(ranking) == pytest.approx([0.1, 0.1, -0.3])


def test_without_a_vector_no_memory_is_close():
    ranking = rank(evidence([1, 2], dense=[0.0, 0.4], unembedded=[True, False]))
    assert closeness(ranking).tolist() == pytest.approx([-math.inf, 0.4])


@given(st.lists(st.floats(-1, 1, width=32), min_size=2, max_size=6))
def test_an_outline_of_code_is_never_surer_and_keeps_its_order(closeness):
    seqs = range(1, len(closeness) + 1)
    text = relevance(rank(evidence(seqs, dense=closeness)))
    code = relevance(rank(evidence(seqs, dense=closeness, outlines=[True] * len(closeness))))
    # The scale of outlines is that of their labels.
    assert (code <= fitted(text) + 1e-6).all()
    by_text = sorted(zip(text.tolist(), code.tolist(), strict=True))
    assert [outlined for _, outlined in by_text] == sorted(outlined for _, outlined in by_text)


@given(st.floats(0, 1))
def test_a_calibrated_probability_has_the_same_fitted_one(probability):
    assert calibrate(probability) <= probability
    assert fitted(calibrate(probability)) == pytest.approx(probability)


def test_current_value_is_as_relevant_as_the_values_before_it():
    ranking = rank(evidence([1, 2, 3], dense=[0.8, 0.0, 0.4], days=[-2, -1, 0]))
    alone = relevance(ranking)
    found = relevance(rank_newest_first(ranking, [[0, 1]]))
    assert found.tolist() == [alone[0], alone[0], alone[2]]


def test_a_memory_linked_to_an_outline_is_less_relevant_than_it():
    linked = {"linked": [0.0, 1.0], "link_relevance": 1.0}
    found = relevance(rank(evidence([1, 2], dense=[0.4, -0.9], outlines=[True, False], **linked)))
    assert found[1] == pytest.approx(calibrate(found[0]))


def test_outline_has_lower_relevance_than_a_text_with_equal_evidence():
    found = relevance(rank(evidence([1, 2], dense=[1.0, 1.0], outlines=[False, True], vocabulary_coverage=1.0)))
    assert found[0] > 0.97
    assert 0.5 < found[1] < 0.75


@given(st.floats(0, 500), st.floats(0, 5000, width=32), st.floats(-0.5, 1, width=32), st.floats(0, 60, width=32))
def test_long_texts_lower_a_relevance_but_make_nothing_irrelevant(words, length, closeness, information):
    short = evidence([1], dense=[closeness], information=[information], vocabulary_coverage=0.7, lengths=[length])
    long = dataclasses.replace(short, query_words=words)
    before, after = (float(relevance(rank(pool))[0]) for pool in (short, long))
    assert after <= before
    assert after >= min(before, IRRELEVANT)
    if words <= LONG_PROMPT_WORDS or length <= LONG_MEMORY_TOKENS:
        assert after == before


def test_personal_fact_that_answers_the_question_is_relevant():
    found = relevance(rank(evidence([1, 2], dense=[-0.1, -0.1], answers_user=[True, False])))
    assert found[0] > 0.7 > IRRELEVANT > found[1]


def test_other_personal_fact_is_found_but_not_injected():
    found = relevance(rank(evidence([1, 2], dense=[-0.07, -0.3], about_user=[True, True])))
    assert IRRELEVANT < found[0] < RELEVANT
    assert found[1] < IRRELEVANT


def test_a_question_for_one_fact_about_the_user_does_not_favor_the_others():
    asked = {"dense": [-0.07, -0.07], "about_user": [True, True]}
    found = relevance(rank(evidence([1, 2], **asked, answers_user=[True, False])))
    assert found[0] > 0.7
    assert found[1] < IRRELEVANT


SHARES = st.floats(0, 1, width=32) | st.sampled_from([0.0, float(np.float32(IRRELEVANT)), 0.5])


@given(
    st.sampled_from(["where is the port set", "wo wird der Port gesetzt"]),
    st.sampled_from(["The port is set in the proxy.", "Der Port wird im Proxy gesetzt."]),
    SHARES,
    st.floats(-1, 1, width=32) | st.sampled_from([CLOSE_TO_ENGLISH, CLOSE_TO_FOREIGN]),
    st.sampled_from([0.0, 0.01, IRRELEVANT, RELEVANT]),
    st.booleans(),
)
def test_no_relevant_memory_is_left_out_before_it_is_read(query, content, probable, close, least, is_asked):
    asked = least if is_asked else None
    probable, close = np.float32(probable), np.float32(close)
    if is_relevant(query, content, float(probable), least, asked, float(close)):
        assert may_be_relevant(query, np.array([probable]), least, asked, np.array([close])).all()
