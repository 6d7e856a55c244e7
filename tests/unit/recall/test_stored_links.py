"""The entities that a walk reads once give the links that a reading at each hop gives."""

import numpy as np
from hypothesis import given, strategies as st

from pipeline.features.entities import store as entities
from pipeline.index.memory_graph import MOST_HOLDERS, weigh_links
from pipeline.kernel.records import Draft, EntityKind
from pipeline.kernel.records.digestion import EntityMention
from pipeline.kernel.store import edges
from pipeline.recall.graph import StoredLinks
from pipeline.write.accept import accept
from tests.fakes.in_process import scratch_database
from tests.fakes.properties import opens_stores

MEMORIES = 6
COUNT = 200
seqs = st.integers(1, MEMORIES)


def read_entities(db, naming, allowed):
    """Weigh the entities of memories, read for these memories alone."""
    pairs = np.array(edges.list_shared_entities(db, naming, MOST_HOLDERS), np.int64).reshape(-1, 2)
    pairs = pairs[allowed[pairs[:, 1]]]
    found, numbers = np.unique(pairs[:, 0], return_inverse=True)
    return weigh_links(numbers, pairs[:, 1], len(found), COUNT)


@opens_stores
@given(
    st.dictionaries(seqs, st.sets(st.sampled_from("abcd"), max_size=3)),
    st.sets(seqs),
    st.sets(seqs),
    st.sets(seqs),
)
def test_each_hop_gets_the_entities_of_its_starts(mentioned, starts, hop, hidden):
    allowed = np.ones(MEMORIES + 1, np.bool_)
    allowed[list(hidden - starts)] = False
    with scratch_database() as database:
        for number in range(MEMORIES):
            accept(database, Draft(f"note {number}"))
        with database.write() as db:
            for seq, names in mentioned.items():
                entities.link(db, seq, [EntityMention(EntityKind.PRODUCT, name, name, 0, 1) for name in names])
        with database.read() as db:
            stored = StoredLinks(db, np.array(sorted(starts), np.int64), allowed, COUNT)
            _, links = stored.find(np.array(sorted(hop), np.int64))
            expected = read_entities(db, sorted(hop & starts), allowed)
    assert links.numbers.tolist() == expected.numbers.tolist()
    assert links.memories.tolist() == expected.memories.tolist()
    assert links.weights.tolist() == expected.weights.tolist()
