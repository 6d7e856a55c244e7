"""A later decision about the same subject replaces the earlier one, in whatever order sessions are concluded."""

import pytest

from pipeline.kernel.store import conclusions
from pipeline.kernel.store.conclusions import ConclusionKind, NewConclusion
from pipeline.sessions.stage import Subjects, link
from tests.fakes.in_process import scratch_database

OLD = "Settled: merge_rows keys on the lowercased mail address and keeps the row with the latest time stamp."
NEW = "Amended rule, superseding keep-latest: the key stays the lowercased mail address, the fullest row is kept."
NEWER = "Amended again, superseding keep-fullest: the key is the lowercased mail address, the oldest row is kept."
OTHER = "Final rule: the invoice number counts up in each year, without gaps."
SAID = {
    "old": ("2026-01-01", OLD),
    "new": ("2026-02-01", NEW),
    "newer": ("2026-03-01", NEWER),
    "other": ("2026-02-02", OTHER),
}


def store(db, session_id):
    at, content = SAID[session_id]
    new = NewConclusion(session_id, 1, ConclusionKind.RULE, content, (), f"{at}T00:00:00.000Z")
    stored = conclusions.replace(db, session_id, [new])
    link(db, stored, Subjects(conclusions.list_mains(db, 100)))


def replaced(db):
    """Return which session replaces which."""
    listed = conclusions.list_of_sessions(db, SAID)
    by_seq = {conclusion.seq: conclusion.session_id for conclusion in listed}
    return {c.session_id: by_seq[c.superseded_by] for c in listed if c.superseded_by is not None}


@pytest.fixture
def db():
    with scratch_database() as database, database.write() as db:
        yield db


@pytest.mark.parametrize(
    "order", ["old other new newer", "newer new other old", "new old newer other", "old newer new other"]
)
def test_each_decision_is_replaced_by_the_next_one(db, order):
    for session_id in order.split():
        store(db, session_id)
    assert replaced(db) == {"old": "new", "new": "newer"}


def test_replaced_conclusion_is_current_again_without_its_amendment(db):
    for session_id in ("old", "new"):
        store(db, session_id)
    conclusions.forget_of_sessions(db, ["new"])
    assert replaced(db) == {}


def test_a_session_that_is_concluded_again_replaces_the_same(db):
    for session_id in ("old", "new", "new", "old"):
        store(db, session_id)
    assert replaced(db) == {"old": "new"}


def test_a_later_decision_about_something_else_replaces_nothing(db):
    for session_id in ("old", "other"):
        store(db, session_id)
    assert replaced(db) == {}
