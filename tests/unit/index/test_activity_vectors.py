"""Texts about one activity are near each other, whatever words they use."""

import numpy as np
import pytest

from pipeline.index.activity_vectors import ActivityVectors, list_descriptions
from tests.fakes.encoder import HashEncoder


def test_each_activity_has_descriptions():
    descriptions = list_descriptions()
    assert len(descriptions) > 20
    assert all(texts and all(texts) for texts in descriptions)


def test_a_text_is_most_like_itself_and_the_values_are_shares():
    encoder = HashEncoder()
    activities = ActivityVectors(encoder)
    texts = [text for texts in list_descriptions() for text in texts]
    vectors = encoder.encode_documents(texts)
    for number, text in enumerate(texts):
        similarities = activities.compare(encoder.encode_query(text), vectors)
        assert similarities.max() == pytest.approx(similarities[number])
        assert 0 <= similarities.min() <= similarities.max() <= 1.001


def test_a_text_about_no_activity_is_like_none():
    encoder = HashEncoder()
    nothing = np.zeros((1, encoder.dimension), np.float32)
    assert ActivityVectors(encoder).compare(encoder.encode_query("run the tests"), nothing).tolist() == [0.0]
