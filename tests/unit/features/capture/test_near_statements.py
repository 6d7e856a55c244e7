"""Sentences that were considered: a short list without their text."""

from pipeline.features.capture import store as near_statements
from pipeline.features.capture.store import KEPT, NearStatement, checksum_of
from tests.fakes.in_process import scratch_database


def near(seq, sentence):
    return NearStatement(seq, checksum_of(sentence), 0.5, "fact", "why")


def test_near_statements_are_newest_first_and_replaced_per_turn():
    with scratch_database() as database, database.write() as db:
        near_statements.add(db, [near(1, "one"), near(1, "two")])
        near_statements.add(db, [near(2, "three")])
        assert near_statements.list_newest(db) == [near(2, "three"), near(1, "two"), near(1, "one")]
        near_statements.add(db, [near(1, "four")])
        assert near_statements.list_newest(db) == [near(1, "four"), near(2, "three")]


def test_only_a_limited_number_is_kept():
    with scratch_database() as database, database.write() as db:
        for seq in range(KEPT + 5):
            near_statements.add(db, [near(seq, "x")])
        newest = near_statements.list_newest(db)
        assert [statement.turn_seq for statement in newest] == list(range(KEPT + 4, 4, -1))
