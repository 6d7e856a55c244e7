from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.index.sessions import SessionMap
from pipeline.records import Draft
from pipeline.write.accept import accept, accept_batch
from tests.fakes.house import scratch_database

turns = st.tuples(st.sampled_from([None, "a", "b"]), st.integers(1, 28))


def drafts(numbered):
    return [
        Draft(f"memory {number}", session_id=session, occurred_at=f"2026-01-{day:02d}T00:00:00.000Z")
        for number, (session, day) in numbered
    ]


@settings(max_examples=40)
@given(st.lists(turns, max_size=15), st.integers(0, 15), st.integers(1, 3))
def test_neighbours_stand_within_reach_in_the_order_of_time(history, refreshed_after, reach):
    numbered = list(enumerate(history, start=1))
    sessions = SessionMap()
    with scratch_database() as database:
        # Refreshed at some point in between, as a front that reads while others write.
        for part in (numbered[:refreshed_after], numbered[refreshed_after:]):
            accept_batch(database, drafts(part))
            with database.read() as db:
                sessions.refresh(db)
    for session in ("a", "b"):
        order = [seq for _, seq in sorted((day, seq) for seq, (name, day) in numbered if name == session)]
        for place, seq in enumerate(order):
            near = set(order[max(0, place - reach) : place + reach + 1])
            assert set(sessions.neighbours([seq], reach)) | {seq} == near
            assert sessions.place(seq)[1] == place
    assert all(sessions.place(seq)[0] == -1 for seq, (name, _) in numbered if name is None)
    assert sessions.neighbours([seq for seq, (name, _) in numbered if name is None], reach) == []


def test_sessions_have_numbers_of_their_own():
    sessions = SessionMap()
    with scratch_database() as database:
        for name in ("a", "b", "a"):
            accept(database, Draft(f"{name} {len(name)} {sessions.place(1)}", session_id=name))
            with database.read() as db:
                sessions.refresh(db)
    assert sessions.place(1)[0] == sessions.place(3)[0] != sessions.place(2)[0]


def test_an_unknown_memory_stands_nowhere():
    assert SessionMap().place(99) == (-1, 0)
    assert SessionMap().neighbours([99], 2) == []
