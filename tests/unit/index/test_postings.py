from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.index.postings import MOST, invert, length_of
from pipeline.index.rows import taken
from pipeline.text.tokens import ASKS, is_field, speaker_term

TERMS = ["port", "zebra", "порт", "東京", ASKS, speaker_term("ada")]
corpora = st.lists(st.lists(st.sampled_from(TERMS), max_size=12), max_size=10).map(
    lambda texts: [(3 * place + 2, terms) for place, terms in enumerate(texts)]
)


@given(corpora)
def test_every_term_knows_its_memories_and_how_often_each_holds_it(corpus):
    postings = invert(corpus)
    for term in [*TERMS, "unknown"]:
        expected = [(seq, Counter(terms)[term]) for seq, terms in corpus if term in terms]
        seqs, counts = postings.of(term)
        assert list(zip(seqs.tolist(), counts.tolist(), strict=True)) == expected
    assert postings.rows.tolist() == [seq for seq, _ in corpus]
    assert postings.lengths.tolist() == [sum(not is_field(t) for t in terms) for _, terms in corpus]


def test_a_word_is_counted_up_to_what_a_byte_holds():
    assert [invert([(1, ["a"] * n)]).of("a")[1].tolist() for n in (255, 256, 100_000)] == [[MOST]] * 3


def test_fields_are_no_words():
    assert length_of(["port", ASKS, "zebra", speaker_term("ada")]) == 2


@pytest.mark.parametrize("values", [[], [5], [5, 6, 7]])
def test_past_the_end_there_is_nothing(values):
    asked = np.array([0, 1, 2, 3, 10**9])
    padded = [*values, 0, 0, 0][:3]
    assert taken(np.array(values, np.int64), asked).tolist() == [*padded, 0, 0]
    assert taken(np.array(values, np.int64), asked[:0]).tolist() == []
