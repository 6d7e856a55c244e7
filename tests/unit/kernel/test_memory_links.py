from hypothesis import given, strategies as st

from pipeline.features.entities import store as entities
from pipeline.kernel.records import Draft, EdgeKind, EntityKind
from pipeline.kernel.records.digestion import EntityMention
from pipeline.kernel.store import edges
from pipeline.kernel.times import utc_now
from pipeline.write.accept import accept
from tests.fakes.in_process import scratch_database
from tests.fakes.properties import opens_stores

MEMORIES = 5
seqs = st.integers(1, MEMORIES)
kinds = st.sampled_from(EdgeKind)


def fill(database):
    for number in range(MEMORIES):
        accept(database, Draft(f"note {number}"))


@opens_stores
@given(st.sets(st.tuples(seqs, kinds, seqs)), st.sets(seqs))
def test_the_edges_of_memories_are_listed_in_both_directions(drawn, asked):
    with scratch_database() as database:
        fill(database)
        with database.write() as db:
            for start, kind, end in drawn:
                edges.add(db, start, kind, end, "test", utc_now())
            found = edges.list_linking_edges(db, sorted(asked))
    leading = {EdgeKind.CAUSE, EdgeKind.SUPPORTS, EdgeKind.SUPERSEDES, EdgeKind.DERIVED_FROM}
    expected = {(a, b) for a, kind, b in drawn if kind in leading and {a, b} & asked}
    assert found == sorted(expected)


@opens_stores
@given(st.dictionaries(seqs, st.sets(st.sampled_from("abc"), max_size=3)), st.sets(seqs), st.integers(1, 4))
def test_entities_of_memories_are_listed_with_all_their_mentions(mentioned, asked, most):
    with scratch_database() as database:
        fill(database)
        with database.write() as db:
            for seq, names in mentioned.items():
                entities.link(db, seq, [EntityMention(EntityKind.PRODUCT, name, name, 0, 1) for name in names])
            found = edges.list_shared_entities(db, sorted(asked), most)
            names = dict(db.execute("SELECT seq, name FROM entity").fetchall())
    holders = {name: {seq for seq, own in mentioned.items() if name in own} for name in "abc"}
    listed = {name for name, own in holders.items() if own & asked and len(own) <= most}
    assert {(names[entity], seq) for entity, seq in found} == {(name, seq) for name in listed for seq in holders[name]}
    assert found == sorted(found)


def test_dates_versions_and_ports_are_no_links():
    with scratch_database() as database:
        fill(database)
        with database.write() as db:
            for seq in (1, 2):
                entities.link(
                    db,
                    seq,
                    [
                        EntityMention(kind, "3000", "3000", 0, 4)
                        for kind in (EntityKind.DATE, EntityKind.VERSION, EntityKind.PORT)
                    ],
                )
            assert edges.list_shared_entities(db, [1], 40) == []
