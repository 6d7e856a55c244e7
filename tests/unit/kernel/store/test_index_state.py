import pytest
from hypothesis import given, strategies as st

from pipeline.kernel.store import index_state
from pipeline.text.tokens import memory_tokens
from tests.fakes.in_process import scratch_database
from tests.fakes.properties import opens_stores

DAY = "2026-03-04T12:00:00.000Z"


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


def test_tail_entries_are_listed_in_change_order(database):
    with database.write() as db:
        index_state.put_tokens(db, 7, ["zebra", "zebra"], 3)
        index_state.put_tokens(db, 2, ["port"], 5)
        index_state.put_tokens(db, 9, [], 4)
        assert index_state.list_tail_after(db, 0) == [(7, 3, ["zebra", "zebra"]), (9, 4, []), (2, 5, ["port"])]
        assert index_state.list_tail_after(db, 3) == [(9, 4, []), (2, 5, ["port"])]
        assert index_state.list_tail_after(db, 5) == []


def test_memory_is_in_the_tail_only_once(database):
    with database.write() as db:
        index_state.put_tokens(db, 7, ["zebra"], 1)
        index_state.put_tokens(db, 7, ["port"], 2)
        assert (index_state.count_tail(db), index_state.list_tail_after(db, 0)) == (1, [(7, 2, ["port"])])
        index_state.drop_tokens(db, 7)
        index_state.drop_tokens(db, 7)
        assert index_state.count_tail(db) == 0


def test_trimmed_tail_keeps_entries_newer_than_the_segment(database):
    with database.write() as db:
        for seq in (1, 2, 3):
            index_state.put_tokens(db, seq, ["zebra"], seq)
        index_state.put_tokens(db, 1, ["port"], 4)
        index_state.trim_tail(db, 3)
        assert index_state.list_tail_after(db, 0) == [(1, 4, ["port"])]


@opens_stores
@given(st.lists(st.text(max_size=60), max_size=3))
def test_the_terms_of_any_text_come_back(contents):
    rows = [(seq, seq, memory_tokens(content, DAY)) for seq, content in enumerate(contents, start=1)]
    with scratch_database() as database, database.write() as db:
        for seq, change, tokens in rows:
            index_state.put_tokens(db, seq, tokens, change)
        assert index_state.list_tail_after(db, 0) == rows
