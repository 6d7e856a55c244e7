import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.store import tail
from pipeline.text.tokens import memory_tokens
from tests.fakes.house import scratch_database

DAY = "2026-03-04T12:00:00.000Z"


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


def test_what_was_put_comes_back_in_the_order_of_change(database):
    with database.write() as db:
        tail.put(db, 7, ["zebra", "zebra"], 3)
        tail.put(db, 2, ["port"], 5)
        tail.put(db, 9, [], 4)
        assert tail.after(db, 0) == [(7, 3, ["zebra", "zebra"]), (9, 4, []), (2, 5, ["port"])]
        assert tail.after(db, 3) == [(9, 4, []), (2, 5, ["port"])]
        assert tail.after(db, 5) == []


def test_a_memory_stands_in_the_tail_once(database):
    with database.write() as db:
        tail.put(db, 7, ["zebra"], 1)
        tail.put(db, 7, ["port"], 2)
        assert (tail.size(db), tail.after(db, 0)) == (1, [(7, 2, ["port"])])
        tail.drop(db, 7)
        tail.drop(db, 7)
        assert tail.size(db) == 0


def test_what_a_segment_covers_goes_and_what_came_since_stays(database):
    with database.write() as db:
        for seq in (1, 2, 3):
            tail.put(db, seq, ["zebra"], seq)
        tail.put(db, 1, ["port"], 4)
        tail.trim(db, 3)
        assert tail.after(db, 0) == [(1, 4, ["port"])]


@settings(max_examples=60)
@given(st.lists(st.text(max_size=60), max_size=3))
def test_the_terms_of_any_text_come_back(contents):
    rows = [(seq, seq, memory_tokens(content, DAY)) for seq, content in enumerate(contents, start=1)]
    with scratch_database() as database, database.write() as db:
        for seq, change, tokens in rows:
            tail.put(db, seq, tokens, change)
        assert tail.after(db, 0) == rows
