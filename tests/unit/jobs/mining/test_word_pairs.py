"""Short and long forms of one name, and rare words of one meaning: only pairs that the vectors confirm."""

import numpy as np

from pipeline.jobs.mining.word_pairs import find_co_mentioned, find_neighbors
from pipeline.jobs.mining.workspace_words import WorkspaceWords
from pipeline.recall.fact_names import CosineLimits

LIMITS = CosineLimits(synonym=0.9, ending=0.95, contraction=0.7, similar=0.6)


class FakeVectors:
    """Vectors in which words of the same group are equal and all others are unrelated."""

    limits = LIMITS

    def __init__(self, *groups):
        self._group = {word: number for number, group in enumerate(groups) for word in group.split()}
        self._words = []

    def encode(self, names):
        places = [self._group.get(name, len(self._group) + index) for index, name in enumerate(names)]
        return np.eye(len(self._group) + len(names), dtype=np.float32)[places]

    def cosine(self, first, second):
        return float(self._group.get(first, -1) == self._group.get(second, -2))


def words_of(*texts):
    words = WorkspaceWords()
    for seq, text in enumerate(texts, 1):
        words.add(seq, text)
    return words


BUTTONS = ("The btn is a button of the kiosk", "Each btn and button is green")


def test_a_short_form_is_tied_to_the_word_that_it_abbreviates():
    vectors = FakeVectors("btn button")
    assert list(find_co_mentioned(words_of(*BUTTONS), lambda: vectors)) == [("btn", "button", 2)]


def test_letters_in_order_are_not_enough():
    assert list(find_co_mentioned(words_of(*BUTTONS), FakeVectors)) == []


def test_words_must_be_used_together_more_than_once():
    words = words_of(BUTTONS[0], "The btn is green", "The button is red")
    assert list(find_co_mentioned(words, lambda: FakeVectors("btn button"))) == []


def test_rare_words_of_one_meaning_are_tied():
    words = words_of("The vessel leaves from Gdynia", "Our steamer arrives late")
    assert list(find_neighbors(words, lambda: FakeVectors("vessel steamer"))) == [("steamer", "vessel", 1)]
    assert list(find_neighbors(words, FakeVectors)) == []


def test_frequent_words_have_no_neighbours():
    words = words_of(*(f"The vessel number {number} leaves" for number in range(4)), "Our steamer arrives late")
    assert list(find_neighbors(words, lambda: FakeVectors("vessel steamer"))) == []
