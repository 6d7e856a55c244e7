from hypothesis import given, strategies as st

from pipeline.features.entities import store as entities
from pipeline.kernel.records import OWNER, EntityKind
from pipeline.kernel.records.digestion import EntityMention
from tests.fakes.in_process import scratch_database
from tests.fakes.job_runs import write
from tests.fakes.properties import opens_stores

mentions = st.builds(
    lambda kind, name: EntityMention(kind, name, name.upper(), 0, len(name)),
    st.sampled_from([EntityKind.PERSON, EntityKind.FILE]),
    st.sampled_from(["ada", "bob", "cleo", "dora"]),
)


@opens_stores
@given(st.lists(st.tuples(st.integers(1, 4), st.none() | st.lists(mentions, max_size=6)), max_size=12))
def test_entity_links_equal_the_current_mentions(history):
    current = {}
    with scratch_database() as database, database.write() as db:
        for seq, found in history:
            if found is None:
                entities.unlink(db, seq)
                current.pop(seq, None)
            else:
                entities.link(db, seq, found)
                current[seq] = {(m.kind, m.name) for m in found}
        for seq in range(1, 5):
            assert {(e.kind, e.name) for e in entities.of(db, seq)} == current.get(seq, set())
        named = {row[0]: (row[1], row[2]) for row in db.execute("SELECT seq, kind, name FROM entity")}
        assert set(named.values()) == {(str(k), n) for found in current.values() for k, n in found}


@opens_stores
@given(
    st.sets(st.text("aAßẞsSüÜİi%_*[]\\K\u212a", min_size=1, max_size=5), min_size=1, max_size=6),
    st.text("aAßẞsSüÜİi%_*[]\\K\u212a", min_size=1, max_size=3),
)
def test_entity_search_matches_substrings_ignoring_case(names, text):
    with scratch_database() as database:
        write(database, 0, "Everything is mentioned here")
        with database.write() as db:
            entities.link(db, 1, [EntityMention(EntityKind.FILE, name, name, 0, len(name)) for name in names])
            for asked in (text, text.lower()):
                found = entities.page(db, OWNER, asked, None, 50, None)
                assert {one.name for one in found} == {name for name in names if asked.casefold() in name.casefold()}
