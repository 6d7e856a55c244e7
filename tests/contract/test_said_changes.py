"""Which labelled pairs of messages count as a change, with the vectors of the default encoder."""

import csv
from pathlib import Path

import numpy as np
import pytest

from pipeline.capture.change_pairs import SaidChange, may_change
from pipeline.capture.said_changes import EarlierStatement, choose_replaced
from pipeline.capture.statements import StatementClassifier
from pipeline.index.encoder import OnnxEncoder
from pipeline.store.turns import Role, Turn
from tests.support.encoders import models_folder

PAIRS = Path(__file__).parents[1] / "data" / "said_changes.tsv"
CHANGES = {"replaces", "revokes"}
# A little below what is reached, as another processor rounds differently.
RECALL = 0.9
PRECISION = 0.85
# What adds to a statement, repeats it, or is only a plan or a wish.
HARMLESS = {"adds", "narrows", "future", "proposal", "same"}


@pytest.fixture(scope="module")
def judged(compiled_model):
    """The pairs that no weight was fitted on, each with whether it counts as a change."""
    encoder = OnnxEncoder.load(compiled_model, threads=1)
    statements = StatementClassifier.load(encoder, models_folder() / "statements")
    with PAIRS.open(encoding="utf-8", newline="") as file:
        pairs = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1::2]
    return [(pair, _is_change(pair, encoder, statements)) for pair in pairs]


def test_additions_exceptions_plans_and_repetitions_are_no_changes(judged):
    assert [pair for pair, is_change in judged if is_change and pair["relation"] in HARMLESS] == []


def test_few_messages_about_the_same_thing_are_taken_for_changes(judged):
    relations = [pair["relation"] for pair, is_change in judged if is_change]
    assert np.mean([relation in CHANGES for relation in relations]) >= PRECISION


@pytest.mark.parametrize("relation", sorted(CHANGES))
def test_most_changes_are_recognized(judged, relation):
    assert np.mean([is_change for pair, is_change in judged if pair["relation"] == relation]) >= RECALL


def _is_change(pair, encoder, statements):
    (statement,) = statements.classify([pair["new"]])
    change = SaidChange(pair["new"], lasts=statement.lasts)
    old = EarlierStatement(pair["old"], Turn("s1", Role.USER, pair["old"], "2026-05-04T08:00:00Z", 1))
    related = may_change(pair["new"], statement.lasts) and change.shares_subject(pair["old"])
    return related and choose_replaced(change, [old], encoder) == [old]
