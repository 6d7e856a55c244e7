"""Which sentences the words of trouble take for reports: a labelled set in four languages that only judges."""

import json
from collections import Counter
from pathlib import Path

import pytest

from pipeline.features.relations.replacements import HEDGES, TROUBLE

DATA = Path(__file__).parents[3] / "data" / "trouble.jsonl"
SENTENCES = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
LANGUAGES = ("en", "de", "es", "fr")


def reports_trouble(text):
    return TROUBLE.search(text) is not None and HEDGES.search(text) is None


def test_the_set_is_balanced():
    counts = Counter((sentence["part"], sentence["language"], sentence["label"]) for sentence in SENTENCES)
    assert counts == {
        (part, language, label): 10
        for part in ("calibration", "test")
        for language in LANGUAGES
        for label in ("trouble", "none")
    }
    assert len({sentence["text"] for sentence in SENTENCES}) == len(SENTENCES)


# A wrong report becomes a wrong cause, so a wider list must stay as precise (decision 0054).
def test_no_harmless_sentence_is_a_report():
    wrong = [sentence["text"] for sentence in SENTENCES if sentence["label"] == "none"]
    assert [text for text in wrong if reports_trouble(text)] == []


@pytest.mark.parametrize(("language", "share"), [("en", 0.35), ("de", 0.2), ("es", 0.1), ("fr", 0.15)])
def test_some_reports_are_found(language, share):
    texts = [one["text"] for one in SENTENCES if (one["language"], one["label"]) == (language, "trouble")]
    assert sum(map(reports_trouble, texts)) >= share * len(texts)
