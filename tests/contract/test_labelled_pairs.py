"""What the rules make of the labelled pairs with the cosines of the default encoder."""

import json
from pathlib import Path

import pytest

from pipeline.index.encoder import OnnxEncoder
from pipeline.text.similarity.pair_classifier import MERGE_COSINE, PAIR_COSINE, Relation, classify_pair

PAIRS = Path(__file__).parents[1] / "data" / "pairs.json"
# A little below what is reached, as another processor rounds differently.
MERGE_PRECISION = 0.99
MERGE_RECALL = 0.66
DENIAL_PRECISION = 0.90
DENIAL_RECALL = 0.80
WAITING_OR_MERGED = 0.94


@pytest.fixture(scope="module")
def judgements(compiled_model):
    """Every pair with its cosine and the relation that the rules see."""
    pairs = json.loads(PAIRS.read_text(encoding="utf-8"))["pairs"]
    encoder = OnnxEncoder.load(compiled_model, threads=1)
    first, second = (encoder.encode_documents([pair[side] for pair in pairs]) for side in ("first", "second"))
    cosines = (first * second).sum(axis=1).tolist()
    return [
        (pair, cosine, _as_labelled(classify_pair(pair["first"], pair["second"], cosine).relation))
        for pair, cosine in zip(pairs, cosines, strict=True)
    ]


def precision(judged, relation):
    labels = [pair["label"] for pair, _, seen in judged if seen is relation]
    return labels.count(relation) / len(labels)


def _as_labelled(relation):
    # The labels know no time: another value denies the one before it, and holds in its place.
    return Relation.CONTRADICTS if relation is Relation.SUPERSEDES else relation


def recall(judged, relation):
    seen = [seen for pair, _, seen in judged if pair["label"] == relation]
    return seen.count(relation) / len(seen)


def test_the_pairs_are_well_formed_and_many():
    pairs = json.loads(PAIRS.read_text(encoding="utf-8"))["pairs"]
    assert all(pair.keys() == {"first", "second", "label", "why", "part"} for pair in pairs)
    assert {pair["part"] for pair in pairs} == {"calibration", "test"}
    assert len({frozenset((pair["first"], pair["second"])) for pair in pairs}) == len(pairs) >= 220
    labels = [Relation(pair["label"]) for pair in pairs]
    assert labels.count(Relation.SAME) >= 80
    assert sum(label in (Relation.DIFFERENT, Relation.CONTRADICTS) for label in labels) >= 100


def test_merged_pairs_are_the_same_statement(judgements):
    assert precision(judgements, Relation.SAME) >= MERGE_PRECISION


def test_no_near_miss_is_merged(judgements):
    merged = [pair for pair, _, seen in judgements if seen is Relation.SAME and pair["label"] != Relation.SAME]
    assert merged == []


def test_cosine_alone_would_merge_different_statements(judgements):
    """The near misses are near: without the rules, nearly every other merge would destroy something."""
    near = [pair["label"] for pair, cosine, _ in judgements if cosine >= MERGE_COSINE]
    assert near.count("same") / len(near) < 0.6


@pytest.mark.parametrize("part", ["calibration", "test"])
def test_most_duplicates_are_merged(judgements, part):
    assert recall([one for one in judgements if one[0]["part"] == part], Relation.SAME) >= MERGE_RECALL


def test_a_duplicate_that_is_not_merged_waits(judgements):
    near = [seen for pair, cosine, seen in judgements if pair["label"] == Relation.SAME and cosine >= PAIR_COSINE]
    kept = [seen for seen in near if seen in (Relation.SAME, Relation.BORDERLINE)]
    assert len(kept) / len(near) >= WAITING_OR_MERGED


def test_reported_contradictions_are_contradictions(judgements):
    assert precision(judgements, Relation.CONTRADICTS) >= DENIAL_PRECISION


@pytest.mark.parametrize("part", ["calibration", "test"])
def test_most_contradictions_are_seen(judgements, part):
    assert recall([one for one in judgements if one[0]["part"] == part], Relation.CONTRADICTS) >= DENIAL_RECALL
