from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from pipeline.index.row_arrays import FIRST_CAPACITY, NOBODY, SessionMap
from pipeline.kernel.records import Draft
from tests.fakes.in_process import accept_batch, scratch_database
from tests.fakes.properties import examples

turns = st.tuples(st.sampled_from([None, "a", "b"]), st.integers(1, 28))


def drafts(numbered):
    return [
        Draft(f"memory {number}", session_id=session, occurred_at=f"2026-01-{day:02d}T00:00:00.000Z")
        for number, (session, day) in numbered
    ]


def read_parts(sessions, *parts):
    """Write each part and refresh after it, as a web server that reads while others write."""
    with scratch_database() as database:
        for part in parts:
            accept_batch(database, drafts(part))
            with database.read() as db:
                sessions.refresh(db)


def at(order, place):
    return order[place] if 0 <= place < len(order) else 0


@examples(50)
@given(st.lists(turns, max_size=15), st.lists(st.integers(0, 15), max_size=3))
def test_session_turns_are_in_time_order_for_any_write_order(history, refreshed_after):
    numbered = list(enumerate(history, start=1))
    cuts = [0, *sorted(refreshed_after), len(numbered)]
    sessions = SessionMap()
    read_parts(sessions, *(numbered[start:end] for start, end in pairwise(cuts)))
    for session in ("a", "b"):
        order = [seq for _, seq in sorted((day, seq) for seq, (name, day) in numbered if name == session)]
        seqs, places = np.array(order, np.int64), range(len(order))
        assert sessions.before(seqs).tolist() == [at(order, place - 1) for place in places]
        assert sessions.after(seqs).tolist() == [at(order, place + 1) for place in places]
        for place, seq in enumerate(order):
            near = {at(order, place + step) for step in (-2, -1, 1, 2)}
            assert set(sessions.around(np.array([seq])).tolist()) | {0} == near | {0}
    alone = np.array([seq for seq, (name, _) in numbered if name is None], np.int64)
    assert set(sessions.around(alone).tolist()) <= {0}


@examples(30)
@given(st.lists(turns, max_size=15))
def test_memories_share_a_number_exactly_when_they_share_a_session(history):
    numbered = list(enumerate(history, start=1))
    sessions = SessionMap()
    read_parts(sessions, numbered)
    session_of = sessions.numbers()
    names = [name or seq for seq, (name, _) in numbered]
    pairs = set(zip(names, session_of[1:].tolist(), strict=True))
    assert len(pairs) == len(set(names)) == len(set(session_of[1:].tolist()))
    assert NOBODY not in session_of[1:]
    assert session_of[0] == NOBODY


@pytest.mark.parametrize("seq", [0, 99, FIRST_CAPACITY, 10**9])
def test_unknown_memory_has_no_session_or_neighbors(seq):
    """An index may know of memories that the store does not: of a store put back from a copy, say."""
    sessions, asked = SessionMap(), np.array([seq])
    assert sessions.sessions(asked).tolist() == [NOBODY]
    assert sessions.before(asked).tolist() == sessions.after(asked).tolist() == [0]
    assert set(sessions.around(asked).tolist()) == {0}


def test_more_memories_than_there_was_room_for():
    sessions = SessionMap()
    many = [(seq, ("a", 1)) for seq in range(1, FIRST_CAPACITY + 500)]
    read_parts(sessions, many[:10], many[10 : FIRST_CAPACITY - 1], many[FIRST_CAPACITY - 1 :])
    seqs = np.arange(2, len(many))
    assert (sessions.before(seqs) == seqs - 1).all()
    assert (sessions.after(seqs) == seqs + 1).all()
