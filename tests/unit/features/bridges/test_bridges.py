"""Names for one thing: found in memories that everybody may see, gone with a purge."""

import pytest

from pipeline.features.bridges import job as module, store
from pipeline.features.bridges.job import mine_bridges
from pipeline.features.bridges.store import BridgeSource
from pipeline.features.entities import alias_store as entity_aliases
from pipeline.features.entities.alias_store import AliasOrigin
from pipeline.kernel.records import EntityKind, Scope, ScopeKind, Sensitivity
from pipeline.write.revise import archive, purge
from tests.fakes.in_process import scratch_database
from tests.fakes.job_runs import after, job_run_on, write

TODAY = 30
DEFINES = "The aquarium, i.e. the staging cluster, is wiped each Friday"
NAMES = ("aquarium", "staging cluster")
ADA = Scope(ScopeKind.AGENT, "ada")
OWNER = Scope(ScopeKind.USER)


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


def mine(database, day=TODAY, **fields):
    return mine_bridges(job_run_on(database, day, **fields))


def list_names(database):
    with database.read() as db:
        return [(bridge.first, bridge.second) for bridge in store.list_active(db)]


def list_rows(database):
    with database.read() as db:
        return db.execute("SELECT first, second FROM bridge ORDER BY seq").fetchall()


def test_a_definition_becomes_a_bridge_with_its_memory(database):
    memory_id = write(database, 1, DEFINES)
    assert mine(database).counts["definition"] == 1
    with database.read() as db:
        [bridge] = store.list_active(db)
    assert (bridge.first, bridge.second, bridge.source, bridge.memory_id) == (
        *NAMES,
        BridgeSource.DEFINITION,
        memory_id,
    )


def test_entities_that_a_user_merged_are_names_for_one_thing(database):
    write(database, 1, "The cron job at night reads `nightowl-batch`")
    alias, target = (EntityKind.IDENTIFIER, "nightowl-batch"), (EntityKind.IDENTIFIER, "settlement-runner")
    with database.write() as db:
        entity_aliases.merge(db, alias, target, AliasOrigin.USER)
    mine(database)
    assert ("nightowl-batch", "settlement-runner") in list_names(database)
    with database.write() as db:
        entity_aliases.separate(db, entity_aliases.find_alias(db, alias), forever=True)
    mine(database)
    assert list_names(database) == []


def test_a_merged_name_that_only_its_author_may_see_connects_nothing(database):
    write(database, 1, "`nightowl-batch` runs at two", scope=ADA)
    with database.write() as db:
        names = (EntityKind.IDENTIFIER, "nightowl-batch"), (EntityKind.IDENTIFIER, "settlement-runner")
        entity_aliases.merge(db, *names, AliasOrigin.USER)
    mine(database)
    assert list_names(database) == []


def test_a_name_with_many_meanings_is_no_name(database):
    for number, other in enumerate(("otter-hut", "beaver-hut", "badger-hut", "weasel-hut")):
        write(database, number, f"The zoo ({other}) holds numbers, says note {number}")
    mine(database)
    assert list_names(database) == []


@pytest.mark.parametrize(
    "fields", [{"scope": ADA}, {"scope": OWNER}, {"sensitivity": Sensitivity.PRIVATE}], ids=["agent", "user", "private"]
)
def test_scoped_memories_are_not_mined_for_bridges(database, fields):
    write(database, 1, DEFINES, **fields)
    mine(database)
    assert list_rows(database) == []


def test_a_bridge_is_gone_with_its_memory(database):
    memory_id = write(database, 1, DEFINES)
    mine(database)
    archive(database, memory_id)
    assert list_names(database) == []
    mine(database)
    assert list_rows(database) == []


def test_another_run_changes_nothing(database):
    write(database, 1, DEFINES)
    mine(database)
    with database.read() as db:
        before = db.execute("SELECT * FROM bridge").fetchall()
    mine(database, TODAY + 1)
    with database.read() as db:
        assert db.execute("SELECT * FROM bridge").fetchall() == before


def test_a_purge_takes_the_names_along(database):
    memory_id = write(database, 1, DEFINES)
    other = write(database, 2, "Gangway, i.e. the edge proxy, logs each caller")
    mine(database)
    purge(database, memory_id)
    assert list_rows(database) == []
    mine(database, TODAY + 1)
    assert list_names(database) == [("Gangway", "edge proxy")]
    assert other


def test_memory_purged_during_the_run_leaves_no_bridges(database, monkeypatch):
    memory_id = write(database, 1, DEFINES)
    choose = module.choose_bridges

    def choose_late(words, found):
        purge(database, memory_id)
        return choose(words, found)

    with monkeypatch.context() as patch:
        patch.setattr(module, "choose_bridges", choose_late)
        assert mine(database).more
    assert list_rows(database) == []


def test_a_run_that_pauses_changes_nothing(database):
    write(database, 1, DEFINES)
    assert mine(database, pausing=after(0)).more
    assert list_rows(database) == []
