"""Sentences are compared by the words, the pairs of words and the beginnings that they share."""

import numpy as np
import pytest

from pipeline.index.sentence_classifier import KnownWords, SentenceClassifier, is_fitted, solve
from pipeline.recall.intent import EXAMPLES
from tests.fakes.encoder import HashEncoder

# Of "use pnpm": two words, three pairs, and the beginning, which both lengths of a beginning give.
FORMS = {"^ use", "use", "use pnpm", "pnpm", "pnpm $", "^ use pnpm"}


@pytest.mark.parametrize(
    ("sentence", "forms", "common"),
    [
        ("use pnpm", 6, 6),
        ("Use PNPM", 6, 6),
        ("use npm", 6, 2),
        ("port 80", 6, 0),
        ("", 2, 0),
    ],
)
def test_known_words_compare_words_pairs_and_beginnings(sentence, forms, common):
    [[similarity]] = KnownWords(["use pnpm"]).compare([sentence], 1.0)
    assert similarity == pytest.approx(np.exp(2 * (common / np.sqrt(len(FORMS) * forms) - 1)))


def test_a_digit_counts_as_any_other_digit():
    known = KnownWords(["listens on 8080", "listens on a port"])
    first, second = known.compare(["listens on 9090"], 1.0)[0]
    assert first == pytest.approx(1.0)
    assert second < 0.5


def test_fitted_weights_of_another_version_are_replaced(tmp_path):
    encoder = HashEncoder()
    expected = SentenceClassifier.load([encoder], EXAMPLES, tmp_path).score(["why is it slow?"])
    [file] = tmp_path.iterdir()
    # A version with one mark more stored its weights under the same name.
    np.save(file, np.hstack([np.load(file), np.load(file)[:, :1]]))
    assert is_fitted([encoder.name], EXAMPLES, tmp_path)
    assert SentenceClassifier.load([encoder], EXAMPLES, tmp_path).score(["why is it slow?"]) == pytest.approx(expected)


def test_a_label_that_is_solved_early_does_not_disturb_the_others():
    matrix = np.array([[3, 1, 0], [1, 2, 1], [0, 1, 3]], np.float32)
    right = np.array([[1, 1], [1, 1], [1, -1]], np.float32)
    assert solve(matrix, right) == pytest.approx(np.linalg.solve(matrix, right))


def test_conjugate_gradients_solve_a_fit_as_lapack_does():
    random = np.random.default_rng(4)
    rows = random.normal(size=(300, 40)).astype(np.float32)
    matrix = np.exp((rows @ rows.T - 40) / 40).astype(np.float32)
    matrix.flat[:: len(matrix) + 1] += 1
    right = random.choice([-1, 1], size=(300, 3)).astype(np.float32)
    expected = np.linalg.solve(matrix.astype(np.float64), right)
    assert np.allclose(solve(matrix, right), expected, atol=1e-5 * np.abs(expected).max())
