"""Other names of entities: merged by a list, by a person's full name or by the user, and separated again."""

import pytest
from hypothesis import given, strategies as st

from pipeline.features.entities import alias_store as entity_aliases, store as entities
from pipeline.features.entities.alias_store import AliasOrigin
from pipeline.kernel.records import OWNER, EntityKind, Scope, ScopeKind, Sensitivity, Stage
from pipeline.kernel.records.digestion import EntityMention
from pipeline.kernel.store import work
from tests.fakes.in_process import scratch_database
from tests.fakes.job_runs import write
from tests.fakes.properties import opens_stores

PERSON, PRODUCT, IDENTIFIER = EntityKind.PERSON, EntityKind.PRODUCT, EntityKind.IDENTIFIER
ADA, LOVELACE = (PERSON, "ada"), (PERSON, "ada lovelace")


def mention(kind, surface):
    return EntityMention(kind, surface.casefold(), surface, 0, len(surface))


@pytest.fixture
def db():
    with scratch_database() as database:
        for number in range(1, 7):
            write(database, number, f"Memory number {number}")
        write(database, 7, "A secret", sensitivity=Sensitivity.PRIVATE)
        write(database, 8, "Of an agent", scope=Scope(ScopeKind.AGENT, "spy"))
        with database.write() as db:
            db.execute("DELETE FROM work")
            yield db


def link(db, seq, *mentions):
    for one in mentions:
        if one.name == "k8s":
            entity_aliases.merge_listed(db, (PRODUCT, "k8s"), (PRODUCT, "kubernetes"))
    entities.link(db, seq, mentions)
    entity_aliases.merge_first_names(db, mentions)


def names(db):
    return {(EntityKind(kind), name) for kind, name in db.execute("SELECT kind, name FROM entity")}


def mentioning(db, name):
    entity = entities.find(db, OWNER, name)
    return [] if entity is None else sorted(entities.newest(db, entity.seq, 99))


def queued(db):
    return sorted(seq for (seq,) in db.execute("SELECT memory_seq FROM work WHERE stage = ?", (Stage.ENTITIES,)))


def test_listed_names_of_a_product_are_one_entity(db):
    link(db, 1, mention(PRODUCT, "k8s"))
    link(db, 2, mention(PRODUCT, "Kubernetes"))
    assert names(db) == {(PRODUCT, "kubernetes")}
    assert mentioning(db, "k8s") == mentioning(db, "Kubernetes") == [1, 2]
    assert entities.list_aliases(db, OWNER, entities.find(db, OWNER, "kubernetes")) == ["k8s"]


def test_the_first_name_is_the_only_person_with_it(db):
    link(db, 1, mention(PERSON, "Ada"))
    assert names(db) == {ADA}
    link(db, 2, mention(PERSON, "Ada Lovelace"))
    link(db, 3, mention(PERSON, "Ada"))
    assert names(db) == {LOVELACE}
    assert mentioning(db, "Ada") == [1, 2, 3]


def test_a_second_person_with_the_first_name_separates_it(db):
    link(db, 1, mention(PERSON, "Ada"))
    link(db, 2, mention(PERSON, "Ada Lovelace"))
    link(db, 3, mention(PERSON, "Ada Byron"))
    assert names(db) == {ADA, LOVELACE, (PERSON, "ada byron")}
    assert mentioning(db, "ada") == [1]
    assert queued(db) == [1, 2]


@pytest.mark.parametrize("seq", [7, 8])
def test_full_name_invisible_to_some_readers_is_no_alias(db, seq):
    link(db, seq, mention(PERSON, "Ada Lovelace"))
    link(db, 1, mention(PERSON, "Ada"))
    assert names(db) == {ADA, LOVELACE}


def test_no_name_of_a_deleted_memory_remains(db):
    link(db, 1, mention(PERSON, "Ada"))
    link(db, 2, mention(PERSON, "Ada Lovelace"))
    entities.unlink(db, 2)
    assert names(db) == {ADA}
    assert db.execute("SELECT count(*) FROM entity_alias").fetchone()[0] == 0


def test_the_user_merges_and_separates_two_entities(db):
    crane, harbor = (IDENTIFIER, "crane"), (IDENTIFIER, "harbor-crane")
    link(db, 1, mention(IDENTIFIER, "crane"))
    link(db, 2, mention(IDENTIFIER, "harbor-crane"))
    link(db, 3, mention(IDENTIFIER, "crane"), mention(IDENTIFIER, "harbor-crane"))
    entity_aliases.merge(db, crane, harbor, AliasOrigin.USER)
    link(db, 4, mention(IDENTIFIER, "crane"))
    assert names(db) == {harbor}
    assert mentioning(db, "crane") == [1, 2, 3, 4]
    entity_aliases.separate(db, entity_aliases.find_alias(db, crane), forever=True)
    assert mentioning(db, "crane") == [1, 4]
    # One mention of the third memory was lost: it is linked again.
    assert queued(db) == [1, 2, 3, 4]


def test_names_separated_by_the_user_are_not_merged_again(db):
    link(db, 1, mention(PRODUCT, "k8s"))
    link(db, 2, mention(PRODUCT, "Kubernetes"))
    entity_aliases.separate(db, entity_aliases.find_alias(db, (PRODUCT, "k8s")), forever=True)
    link(db, 3, mention(PRODUCT, "k8s"))
    assert names(db) == {(PRODUCT, "k8s"), (PRODUCT, "kubernetes")}
    assert mentioning(db, "k8s") == [1, 3]


def test_a_merged_entity_takes_its_other_names_with_it(db):
    for seq, name in enumerate(("a-crane", "b-crane", "c-crane"), start=1):
        link(db, seq, mention(IDENTIFIER, name))
    entity_aliases.merge(db, (IDENTIFIER, "a-crane"), (IDENTIFIER, "b-crane"), AliasOrigin.USER)
    entity_aliases.merge(db, (IDENTIFIER, "b-crane"), (IDENTIFIER, "c-crane"), AliasOrigin.USER)
    assert mentioning(db, "a-crane") == [1, 2, 3]


SURFACES = ("Ada", "Ada Lovelace", "Ada Byron", "Bob", "Bob Kern")
STEPS = st.one_of(
    st.tuples(st.just("link"), st.integers(1, 6), st.lists(st.sampled_from(SURFACES), max_size=3)),
    st.tuples(st.just("unlink"), st.integers(1, 6), st.just(())),
    st.tuples(st.sampled_from(["merge", "separate"]), st.just(0), st.permutations(SURFACES)),
)


@opens_stores
@given(st.lists(STEPS, max_size=14))
def test_every_mention_has_an_entity_and_aliases_have_none(steps):
    with scratch_database() as database:
        for number in range(1, 7):
            write(database, number, f"Memory number {number}")
        with database.write() as db:
            for what, seq, surfaces in steps:
                change(db, what, seq, surfaces)
                check(db)


def change(db, what, seq, surfaces):
    if what == "link":
        link(db, seq, *(mention(PERSON, surface) for surface in surfaces))
    elif what == "unlink":
        entities.unlink(db, seq)
    else:
        name, target = ((PERSON, surface.casefold()) for surface in surfaces[:2])
        alias = entity_aliases.find_alias(db, name)
        if what == "merge" and {name, target} <= names(db):
            entity_aliases.merge(db, name, target, AliasOrigin.USER)
        elif what == "separate" and alias and alias.origin is not AliasOrigin.SEPARATE:
            entity_aliases.separate(db, alias, forever=True)


def check(db):
    linked = {seq for (seq,) in db.execute("SELECT entity_seq FROM mention")}
    assert linked == {seq for (seq,) in db.execute("SELECT seq FROM entity")}
    merged = db.execute("SELECT kind, name, target_kind, target_name FROM entity_alias WHERE origin <> 'separate'")
    for kind, name, target_kind, target in merged.fetchall():
        assert (kind, name) not in names(db)
        assert (target_kind, target) in names(db)
    assert work.count_dead(db) == {} or not any(work.count_dead(db).values())
