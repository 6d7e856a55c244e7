import json
from pathlib import Path

import numpy as np
from hypothesis import given, strategies as st

from pipeline.index import language_projection
from pipeline.index.language_projection import neutral_projection, within_class_normalization

WIDTH = 24


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@given(st.integers(0, 1000), st.integers(2, 8))
def test_languages_and_prompts_meet_in_one_point(seed, languages):
    documents = normal(seed, languages, WIDTH)
    queries = documents + normal(seed + 1, WIDTH)
    centre, kept = neutral_projection(queries, documents)
    for means in (queries, documents):
        np.testing.assert_allclose((means - centre) @ kept.T, 0, atol=1e-4)


@given(st.integers(0, 1000))
def test_components_equal_in_all_languages_are_kept(seed):
    documents, queries = normal(seed, 4, WIDTH), normal(seed + 1, 4, WIDTH)
    documents[:, WIDTH // 2 :] = queries[:, WIDTH // 2 :] = 0.5
    centre, kept = neutral_projection(queries, documents)
    vector = normal(seed + 2, WIDTH)
    np.testing.assert_allclose((kept @ (vector - centre))[WIDTH // 2 :], vector[WIDTH // 2 :] - 0.5, atol=1e-5)


@given(st.integers(0, 1000))
def test_neutral_projection_is_idempotent(seed):
    _, kept = neutral_projection(normal(seed, 5, WIDTH), normal(seed + 1, 5, WIDTH))
    np.testing.assert_allclose(kept @ kept, kept, atol=1e-5)
    assert np.linalg.matrix_rank(kept, tol=1e-3) == WIDTH - 5


@given(st.integers(0, 1000))
def test_variance_within_a_meaning_is_shrunk_and_other_axes_are_kept(seed):
    said = np.repeat(normal(seed, 6, 1, WIDTH), 40, axis=1)
    said[:, :, 0] += 9 * normal(seed + 1, 6, 40)
    shrunk = within_class_normalization(said)
    assert shrunk[0, 0] < 0.3
    np.testing.assert_allclose(shrunk[1:, 1:], np.eye(WIDTH - 1), atol=1e-4)
    np.testing.assert_allclose(shrunk[0, 1:], 0, atol=1e-4)


@given(st.integers(0, 1000), st.floats(0.1, 10))
def test_normalization_is_invariant_to_scale(seed, scale):
    said = normal(seed, 5, 8, WIDTH)
    ours, scaled = within_class_normalization(said), within_class_normalization(said * np.float32(scale))
    np.testing.assert_allclose(ours, scaled, atol=1e-4)


def test_every_language_says_the_same_sentences():
    languages = json.loads(Path(language_projection.SENTENCES).read_text(encoding="utf-8"))
    assert len(languages) > 20
    assert {len(set(sentences)) for sentences in languages.values()} == {6, 30}
    assert sum(len(sentences) == 30 for sentences in languages.values()) == 9
    every = [sentence for sentences in languages.values() for sentence in sentences]
    assert len(set(every)) == len(every)


def test_a_language_with_few_sentences_is_centred_as_if_it_had_them_all():
    said, languages = normal(1, 30, WIDTH), normal(2, 9, 1, WIDTH)
    encoded = list(said + languages)
    few = [*encoded[:8], encoded[8][:6]]
    np.testing.assert_allclose(language_projection._means(few)[8], language_projection._means(encoded)[8], atol=1e-5)
