"""A stale index may miss, but it never shows what must not be seen."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import Conflict
from pipeline.index.lexical import LexicalIndex
from pipeline.index.sessions import SessionMap
from pipeline.index.vectors import DenseIndex, VectorTable
from pipeline.recall.channels import ChannelPool
from pipeline.recall.query import Channel, Query
from pipeline.recall.search import Reader, search
from pipeline.records import Draft, Kind, Scope, ScopeKind
from pipeline.sleep.segment import rebuild_segment
from pipeline.store import meta
from pipeline.store.memories import Filter
from pipeline.write import revise
from pipeline.write.accept import accept
from pipeline.write.revise import Revision
from tests.fakes.encoder import HashEncoder
from tests.fakes.house import scratch_database

WORDS = ["port", "zebra", "billing", "gateway", "queue"]
SCOPES = [Scope(), Scope(ScopeKind.USER), Scope(ScopeKind.AGENT, "a"), Scope(ScopeKind.SESSION, "s1")]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
numbers = st.integers(0, 30)
writes = st.tuples(
    st.just("write"),
    texts,
    st.sampled_from(SCOPES),
    st.sampled_from([None, "s1", "s2"]),
    st.sampled_from(list(Kind)[:2]),
)
steps = st.one_of(
    writes,
    st.tuples(st.sampled_from(["archive", "restore", "purge"]), numbers),
    st.tuples(st.just("edit"), numbers, texts),
    st.just(("segment",)),
    st.just(("embed",)),
)
# Something is there before something happens to it, so that few examples are about an empty workspace.
histories = st.tuples(st.lists(writes, min_size=2, max_size=5), st.lists(steps, min_size=2, max_size=10)).map(
    lambda parts: [*parts[0], *parts[1]]
)
filters = st.builds(
    Filter,
    kinds=st.sampled_from([(), (Kind.FACT,)]),
    scope=st.none() | st.sampled_from(SCOPES),
    session_id=st.none() | st.sampled_from(["s1", "s2"]),
)


class World:
    """A workspace whose segment and vectors are refreshed only when told, and a plain list of what is true."""

    def __init__(self, database):
        self.database = database
        folder = database.file.parent
        self.lexical = folder / "lexical"
        self.encoder = HashEncoder()
        self.table = VectorTable(folder / "vectors.lance", "hash", self.encoder.dimension)
        self.dense = DenseIndex(self.table, 10_000)
        self.vectors_generation = 0
        self.channels = ChannelPool()
        self.errors = []
        self.truth = {}
        self.reader = Reader(
            database,
            LexicalIndex(self.lexical),
            lambda: self.dense,
            SessionMap(),
            lambda: self.encoder,
            self.channels,
            lambda channel, error: self.errors.append((channel, error)),
        )

    def step(self, verb, *rest):
        if verb == "write":
            content, scope, session, kind = rest
            receipt = accept(self.database, Draft(content, scope=scope, session_id=session, kind=kind))
            if receipt.duplicate_of is None:
                self.truth[receipt.id] = (content, scope, session, kind, True)
        elif verb == "segment":
            rebuild_segment(self.database, self.lexical)
        elif verb == "embed":
            self.embed()
        elif self.truth:
            self.change(verb, sorted(self.truth)[rest[0] % len(self.truth)], *rest[1:])

    def change(self, verb, memory_id, *rest):
        content, scope, session, kind, active = self.truth[memory_id]
        try:
            if verb == "edit":
                revise.edit(self.database, memory_id, Revision(content=rest[0]))
                content = rest[0]
            else:
                getattr(revise, verb)(self.database, memory_id)
                active = verb == "restore"
        except Conflict:
            return
        self.truth[memory_id] = (content, scope, session, kind, active)
        if verb == "purge":
            del self.truth[memory_id]

    def embed(self):
        """Embed everything, archived or not, and never remove anything: the stalest index there can be."""
        with self.database.read() as db:
            rows = db.execute("SELECT seq, content FROM memory").fetchall()
        if rows:
            self.vectors_generation += 1
            vectors = {seq: self.encoder.encode_documents([content]) for seq, content in rows}
            with self.table.exclusive():
                self.table.replace(vectors, self.vectors_generation)
            with self.database.write() as db:
                meta.put(db, meta.VECTORS_GENERATION, str(self.vectors_generation))

    def visible(self, wanted):
        return {
            memory_id: content
            for memory_id, (content, scope, session, kind, active) in self.truth.items()
            if active
            and (not wanted.kinds or kind in wanted.kinds)
            and (wanted.session_id is None or session == wanted.session_id)
            and (
                scope == wanted.scope
                if wanted.scope
                else scope.kind in (ScopeKind.WORKSPACE, ScopeKind.USER)
                or (scope.kind is ScopeKind.SESSION and scope.id == wanted.session_id)
            )
        }


@settings(max_examples=60)
@given(histories, st.lists(st.tuples(texts, filters), max_size=2))
def test_recall_shows_what_is_visible_and_all_that_matches(history, questions):
    with scratch_database() as database:
        world = World(database)
        try:
            for step in history:
                world.step(*step)
            for text, wanted in [*questions, (" ".join(WORDS), Filter())]:
                visible = world.visible(wanted)
                answer = search(world.reader, Query(text, k=100, filter=wanted, budget_ms=10_000))
                shown = {hit.memory.id: hit.memory.content for hit in answer.hits}
                assert shown.items() <= visible.items()
                matching = {m for m, content in visible.items() if set(content.split()) & set(text.split())}
                assert matching <= set(shown)
                listed = search(world.reader, Query("", k=100, filter=wanted))
                assert {hit.memory.id for hit in listed.hits} == set(visible)
            assert world.errors == []
        finally:
            world.channels.close()


@pytest.fixture
def world():
    with scratch_database() as database:
        world = World(database)
        yield world
        world.channels.close()


def test_an_exact_match_outranks_what_is_only_important_and_new(world):
    old = accept(world.database, Draft("The zebra gateway", importance=0.0, occurred_at="2020-01-01T00:00:00.000Z"))
    for number in range(20):
        accept(world.database, Draft(f"Queue number {number}", importance=1.0))
    world.embed()
    answer = search(world.reader, Query("zebra gateway", budget_ms=10_000))
    assert answer.hits[0].memory.id == old.id


def test_the_segment_changes_no_order(world):
    for number in range(40):
        accept(
            world.database, Draft(f"{WORDS[number % 5]} {WORDS[number % 3]} note {number}", session_id=f"s{number % 4}")
        )
    world.embed()
    queries = [Query(text, k=40, budget_ms=10_000) for text in ("zebra queue", "billing port note 7", "gateway")]
    before = [[hit.memory.id for hit in search(world.reader, query).hits] for query in queries]
    rebuild_segment(world.database, world.lexical)
    assert [[hit.memory.id for hit in search(world.reader, query).hits] for query in queries] == before


def test_a_channel_that_is_off_or_cold_is_told(world):
    accept(world.database, Draft("zebra"))
    world.embed()
    answer = search(world.reader, Query("zebra", budget_ms=10_000))
    assert answer.channels[Channel.GRAPH].state == "off"
    assert not answer.degraded
