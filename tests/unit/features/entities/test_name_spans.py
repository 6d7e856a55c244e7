"""The decoder of names beside spaCy's own, which it replaces."""

import numpy as np
import pytest

from benchmarks.corpus import memories
from config.import_stubs import SPACY_EXTRAS, hide_packages
from pipeline.features.entities import stage as entities
from pipeline.features.entities.name_spans import NameSpan, NameSpanDecoder

BATCHES = {
    "notes": [memory["content"] for memory in memories(96, seed=5)],
    "prose": [
        "Dr. Alice   Smith went to New York City with the United Nations on 3 March 2025.",
        "the chief executive of Deutsche Bank AG in Frankfurt am Main said so on Monday evening",
        "Caroline: we read The Lord of the Rings at Google last year, and 40 percent of us cried.",
        "Angela Merkel\n\n Berlin \n\tthe Eiffel Tower",
    ],
    "names at the end": [
        "we met Alice",
        "He lives in New York",
        "Bank of",
        "New",
        "It was in 2019, at the University of",
    ],
    "nothing to read": ["", "   ", "\n \n", "\u200b 🎉", ""],
    "beside nothing": ["", "Alice met Bob in Paris.", "  ", "Ann lives in Rome", ""],
}


@pytest.fixture(scope="module")
def nlp():
    with hide_packages(SPACY_EXTRAS):
        import spacy
        from thinc.api import use_ops

    with use_ops("numpy", use_blis=False):
        return spacy.load(entities._MODEL, exclude=list(entities._UNUSED))


@pytest.mark.parametrize("batch", BATCHES)
def test_decoded_name_spans_equal_those_of_spacy(nlp, batch):
    texts = BATCHES[batch]
    expected = [[NameSpan(e.label_, e.start, e.end) for e in document.ents] for document in nlp.pipe(texts)]
    found = NameSpanDecoder(nlp.get_pipe("ner")).decode([nlp.make_doc(text) for text in texts])
    assert found == expected
    assert any(found) or batch == "nothing to read"


def test_no_texts_have_no_names(nlp):
    assert NameSpanDecoder(nlp.get_pipe("ner")).decode([]) == []


class TestOnMadeScores:
    """What no text of ours makes the model score: the rules of the walk, by themselves."""

    @pytest.fixture
    def decoder(self, nlp):
        return NameSpanDecoder(nlp.get_pipe("ner"))

    def test_a_name_never_begins_at_the_last_token(self, nlp, decoder, monkeypatch):
        begin = decoder._places["B", "PERSON"]
        monkeypatch.setattr(decoder, "_score_bias", np.where(np.arange(len(decoder._score_bias)) == begin, 1e6, 0))
        [spans] = decoder.decode([nlp.make_doc("one two three four five")])
        assert spans
        assert spans[-1].end <= 5
        assert all(span.end - span.first > 1 for span in spans if span.label == "PERSON")

    def test_a_name_that_never_ends_reaches_to_the_last_token(self, nlp, decoder, monkeypatch):
        wanted = [decoder._places["B", "PERSON"], decoder._places["I", "PERSON"]]
        monkeypatch.setattr(
            decoder, "_score_bias", np.where(np.isin(np.arange(len(decoder._score_bias)), wanted), 1e6, 0)
        )
        assert decoder.decode([nlp.make_doc("one two three four five")]) == [[NameSpan("PERSON", 0, 5)]]

    def test_a_blank_begins_no_name(self, nlp, decoder, monkeypatch):
        unit = decoder._places["U", "PERSON"]
        monkeypatch.setattr(decoder, "_score_bias", np.where(np.arange(len(decoder._score_bias)) == unit, 1e6, 0))
        document = nlp.make_doc("one \n\n two")
        blank = [token.is_space for token in document].index(True)
        [spans] = decoder.decode([document])
        assert [span.first for span in spans] == [n for n in range(len(document)) if n != blank]
