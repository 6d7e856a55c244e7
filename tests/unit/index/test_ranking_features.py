import contextlib

import numpy as np
import pytest
from hypothesis import given, strategies as st

from pipeline.index.row_arrays import FIRST_CAPACITY, RankingFeatures
from pipeline.kernel.errors import Conflict
from pipeline.kernel.records import Draft, Filter, Kind, Revision, Scope, ScopeKind
from pipeline.kernel.store import memories
from pipeline.write import revise
from pipeline.write.accept import accept
from tests.fakes.in_process import accept_batch, scratch_database
from tests.fakes.properties import opens_stores

SCOPES = [Scope(), Scope(ScopeKind.USER), Scope(ScopeKind.AGENT, "a"), Scope(ScopeKind.SESSION, "s")]
steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 6), st.sampled_from(SCOPES)),
        st.tuples(st.sampled_from(["archive", "restore", "purge", "weigh"]), st.integers(0, 9)),
        st.just(("refresh",)),
    ),
    min_size=2,
    max_size=16,
)


def refresh(features, database):
    with database.read() as db:
        features.refresh(db)
    return features


def change(database, verb, memory_id):
    with contextlib.suppress(Conflict):
        if verb == "weigh":
            revise.edit(database, memory_id, Revision(importance=0.9))
        else:
            getattr(revise, verb)(database, memory_id)


@opens_stores
@given(steps)
def test_incrementally_updated_features_equal_the_store(history):
    features, ids = RankingFeatures(), []
    with scratch_database() as database:
        for verb, *rest in history:
            if verb == "write":
                receipt = accept(database, Draft(f"memory {rest[0]}", scope=rest[1], session_id="s", importance=0.25))
                ids += [receipt.id] if receipt.duplicate_of is None else []
            elif verb == "refresh":
                refresh(features, database)
            elif ids:
                memory_id = ids[rest[0] % len(ids)]
                change(database, verb, memory_id)
                if verb == "purge":
                    ids.remove(memory_id)
        refresh(features, database)
        with database.read() as db:
            visible = memories.visible_seqs(db, Filter())
            alive = memories.by_seqs(db, memories.all_seqs(db))
    assert np.flatnonzero(features.visible).tolist() == sorted(visible)
    for seq, memory in alive.items():
        assert features.importance[seq] == pytest.approx(memory.importance)
        assert [kind for kind in Kind if features.are_of(kind, np.array([seq])).all()] == [memory.kind]
        assert features.are_among((Kind.CODE, memory.kind))[seq]
        assert not features.are_among(set(Kind) - {memory.kind})[seq]


def test_days_are_julian():
    with scratch_database() as database:
        key = {"subject": "staging", "attribute": "port", "value": 1}
        accept(database, Draft("-", occurred_at="2000-01-01T12:00:00.000Z", kind=Kind.KEYED_FACT, details=key))
        features = refresh(RankingFeatures(), database)
    assert features.days[1] == 2451545.0
    assert features.are_of(Kind.KEYED_FACT, np.array([1])).all()


def test_more_memories_than_there_was_room_for():
    with scratch_database() as database:
        features = refresh(RankingFeatures(), database)
        accept_batch(database, [Draft(f"memory {n}") for n in range(FIRST_CAPACITY + 10)])
        refresh(features, database)
    assert int(features.visible.sum()) == FIRST_CAPACITY + 10
    lengths = {len(getattr(features, name)) for name in ("visible", "importance", "days")}
    assert len(lengths) == 1
