"""Which labelled pairs of messages count as a change, with the vectors of the default encoder."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.features.capture.change_pairs import SaidChange, may_change
from pipeline.features.capture.said_changes import EarlierStatement, choose_replaced
from pipeline.index.encoder import OnnxEncoder
from pipeline.kernel.store.turns import Role, Turn
from pipeline.sessions.statements import StatementClassifier
from tests.fakes.memories import PORT_DECISION
from tests.support.encoders import models_folder

PAIRS = Path(__file__).parents[1] / "data" / "said_changes.tsv"
CHANGES = {"replaces", "revokes"}
# A little below what is reached, as another processor rounds differently.
RECALL = 0.9
PRECISION = 0.85
# What adds to a statement, repeats it, or is only a plan or a wish.
HARMLESS = {"adds", "narrows", "future", "proposal", "same"}


@pytest.fixture(scope="module")
def encoder(compiled_model):
    return OnnxEncoder.load(compiled_model, threads=1)


@pytest.fixture(scope="module")
def judged(encoder):
    """The pairs that no weight was fitted on, each with whether it counts as a change."""
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


@pytest.mark.parametrize(
    ("old", "new", "rest"),
    [
        (
            "the hourly import starts at 03:20 utc, owner is Mirjam from data",
            "Mirjam left for another team, since today the imports belong to Henk",
            "the hourly import starts at 03:20 utc",
        ),
        (
            "for staging it's `make push` but only from main, never at noon",
            "ok but we have a replica now, so the noon ban is gone, any time is fine",
            "for staging it's `make push`",
        ),
        ("invoices are rounded up", "invoices are not rounded up any more", ""),
    ],
)
def test_unnamed_part_of_a_changed_statement_stays_valid(encoder, old, new, rest):
    (replaced,) = choose_replaced(SaidChange(new, lasts=0.7), [_said(old)], encoder)
    assert replaced.rest == rest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("the server runs on port 8443, behind caddy", "photo limit back to 8, the server is full"),
        ("for the tables: tests with every change, and never drop one", "lesson learned: dozing kills the worker"),
        ("this is ledger, django in the back, it runs in 40 offices", "we say office for a room with a badge reader"),
    ],
)
def test_a_statement_of_several_parts_changes_only_if_one_of_them_does(encoder, old, new):
    assert choose_replaced(SaidChange(new, lasts=0.7), [_said(old)], encoder) == []


def test_uncaptured_statement_needs_a_more_certain_change(encoder):
    kept = _said("releases come out every second monday")
    raw = replace(kept, memory=None)
    change = SaidChange("we release every week now", lasts=0.4)
    assert [choose_replaced(change, [old], encoder) != [] for old in (kept, raw)] == [True, False]


def _said(text):
    return EarlierStatement(text, Turn("s1", Role.USER, text, "2026-05-04T08:00:00Z", 1), PORT_DECISION)


def _is_change(pair, encoder, statements):
    (statement,) = statements.classify([pair["new"]])
    change = SaidChange(pair["new"], lasts=statement.lasts)
    related = may_change(pair["new"], statement.lasts) and change.shares_subject(pair["old"])
    return related and choose_replaced(change, [_said(pair["old"])], encoder) != []
