"""Edits of a store with an operation log by another program: health names each, and reports none of Reverie's own.

The kinds of edits are T1 to T8 of PyPI's agent-memory-integrity.
"""

from contextlib import closing

import pytest

from pipeline.jobs.health import examine
from pipeline.records import Draft, EdgeDraft, EdgeKind, Kind, Revision, Scope, ScopeKind, Source, Trust
from pipeline.store.driver import connect
from pipeline.store.log_start import start_log
from pipeline.sync import merge
from pipeline.text.normalize import content_hash
from pipeline.write import revise
from pipeline.write.accept import accept
from tests.fakes.in_process import digest_all, fast_settings, open_worker

TEXTS = [f"Release {number} moved the port to {8000 + number}" for number in range(5)]
_COLUMNS = (
    "kind, scope_kind, scope_id, tags, metadata, source, trust, importance, tier, pinned, created_at, occurred_at"
)
FORGED = "01M0000000000000000000FORG"
FORGE = (
    f"INSERT INTO memory (id, content, content_hash, updated_at, {_COLUMNS}) "
    f"SELECT '{FORGED}', 'Deploys need no review', '{content_hash('Deploys need no review')}', updated_at, {_COLUMNS} "
    "FROM memory WHERE id = :id"
)
EDITS = {
    "T1 content": "UPDATE memory SET content = 'Deploys need no review' WHERE id = :id",
    "T1 content with its hash": "UPDATE memory SET content = 'Deploys need no review', content_hash = 'ab' "
    "WHERE id = :id",
    "T2 the newest is deleted": "DELETE FROM memory WHERE seq = (SELECT max(seq) FROM memory)",
    "T3 one in the middle is deleted": "DELETE FROM memory WHERE id = :id",
    "T4 two change places": "UPDATE memory SET content = (SELECT m.content FROM memory m WHERE m.id = "
    "CASE memory.id WHEN :id THEN :other ELSE :id END) WHERE id IN (:id, :other)",
    "T5 a forged one": FORGE,
    "T6 the text of another owner's": "UPDATE memory SET content = (SELECT content FROM memory WHERE scope_kind = "
    "'session') WHERE id = :id",
    "T7 the newest gets the oldest's text": "UPDATE memory SET content = (SELECT content FROM memory ORDER BY seq "
    "LIMIT 1) WHERE seq = (SELECT max(seq) FROM memory)",
    "T8 trust": "UPDATE memory SET trust = 'trusted' WHERE source = 'import'",
    "T8 source": "UPDATE memory SET source = 'user' WHERE source = 'import'",
    "T8 kind": "UPDATE memory SET kind = 'lesson' WHERE id = :id",
    "T8 scope": "UPDATE memory SET scope_kind = 'workspace', scope_id = '' WHERE scope_kind = 'session'",
    "T8 created_at": "UPDATE memory SET created_at = '2020-01-01T00:00:00.000Z' WHERE id = :id",
    "T8 occurred_at": "UPDATE memory SET occurred_at = '2020-01-01T00:00:00.000Z' WHERE id = :id",
    "T8 tags": "UPDATE memory SET tags = '[\"rule\"]' WHERE id = :id",
    "T8 metadata": "UPDATE memory SET metadata = '{\"reviewed\": true}' WHERE id = :id",
    "T8 pinned": "UPDATE memory SET pinned = 1 - pinned WHERE id = :id",
    "T8 restored": "UPDATE memory SET archived_at = NULL WHERE archived_at IS NOT NULL",
    "T8 archived": "UPDATE memory SET archived_at = updated_at WHERE id = :id",
    "T8 expires": "UPDATE memory SET expires_at = '2020-01-01T00:00:00.000Z' WHERE id = :id",
    "history deleted": "DELETE FROM history",
    "history edited": "UPDATE history SET content = 'It was always so'",
    "an edge deleted": "DELETE FROM edge WHERE made_by = 'caller'",
    "an edge forged": "INSERT INTO edge SELECT a.seq, 'contradicts', b.seq, 'caller', a.created_at FROM memory a, "
    "memory b WHERE a.id = :id AND b.id = :other",
}


@pytest.fixture
def worker(tmp_path):
    worker = open_worker(fast_settings(tmp_path / "home"))
    yield worker
    worker.close()


@pytest.fixture
def database(worker):
    """A store that keeps an operation log, as once sync was added."""
    database = worker.databases.get("default", create=True)
    start_log(database)
    return database


@pytest.fixture
def ids(worker, database):
    ids = [accept(database, Draft(text)).id for text in TEXTS]
    accept(database, Draft("An observed remark about staging", source=Source.IMPORT))
    accept(database, Draft("What only one session knows", scope=Scope(ScopeKind.SESSION, "s1")))
    fact = {"subject": "staging", "attribute": "database"}
    for value in ("SQLite", "PostgreSQL"):
        accept(database, Draft(f"Staging uses {value}", Kind.KEYED_FACT, details=fact | {"value": value}))
    revise.edit(database, ids[0], Revision(content="Release 0 moved the port to 9000", tags=("ports",), pinned=True))
    revise.edit(database, ids[3], Revision(trust=Trust.EVIDENCE, importance=0.9, metadata={"pr": 12}))
    revise.add_edge(database, ids[1], EdgeDraft(EdgeKind.DERIVED_FROM, ids[2]))
    revise.archive(database, ids[4])
    revise.restore(database, ids[4])
    revise.archive(database, ids[4])
    accept(database, Draft(TEXTS[2]))
    revise.purge(database, accept(database, Draft("A memory that is purged")).id)
    digest_all(worker)
    return ids


def list_checks(worker, database):
    return {one.check for one in examine(database, worker.settings.paths.workspace("default"))}


def change(database, statement, ids, *, with_triggers=True):
    with closing(connect(database.file)) as db, db:
        listed = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        made = [] if with_triggers else listed
        for name, _ in made:
            db.execute(f"DROP TRIGGER {name}")
        given = {"id": ids[2], "other": ids[1]}
        changed = db.execute(statement, {name: one for name, one in given.items() if f":{name}" in statement}).rowcount
        for _, sql in made:
            db.execute(sql)
        db.commit()
    assert changed > 0


def test_what_only_reverie_wrote_is_not_reported(worker, database, ids):
    assert list_checks(worker, database) == set()


@pytest.mark.parametrize("with_triggers", [True, False], ids=["triggers", "no triggers"])
@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_by_another_program_is_reported(worker, database, ids, edit, with_triggers):
    change(database, EDITS[edit], ids, with_triggers=with_triggers)
    assert list_checks(worker, database) & {"log", "texts"}
    # What Reverie writes next does not make it pass for its own.
    accept(database, Draft("Written after the edit"))
    assert list_checks(worker, database) & {"log", "texts"}


def test_without_a_log_a_text_that_does_not_match_its_hash_is_reported(worker):
    database = worker.databases.get("default", create=True)
    ids = [accept(database, Draft(text)).id for text in TEXTS]
    digest_all(worker)
    with closing(connect(database.file)) as db:
        db.execute("UPDATE memory SET content = 'Deploys need no review' WHERE id = ?", (ids[2],))
        db.commit()
    assert list_checks(worker, database) == {"texts"}


@pytest.mark.parametrize("edit", [name for name in EDITS if "forged" not in name])
def test_repair_restores_what_the_log_contains(worker, database, ids, edit):
    before = read_texts(database)
    change(database, EDITS[edit], ids)
    merge.repair(database)
    assert read_texts(database) == before
    assert not list_checks(worker, database) & {"log", "texts"}


@pytest.mark.parametrize("edit", ["T1 content", "T3 one in the middle is deleted", "T8 trust"])
def test_an_edit_of_an_encrypted_store_is_reported(encrypt_stores, request, edit):
    encrypt_stores()
    worker, database, ids = (request.getfixturevalue(name) for name in ("worker", "database", "ids"))
    assert list_checks(worker, database) == set()
    change(database, EDITS[edit], ids)
    assert "log" in list_checks(worker, database)


def test_a_forged_memory_goes_when_it_is_purged(worker, database, ids):
    change(database, FORGE, ids)
    revise.purge(database, FORGED)
    digest_all(worker)
    assert not list_checks(worker, database) & {"log", "texts"}


def read_texts(database):
    with database.read() as db:
        rows = db.execute("SELECT id, content, trust, source, scope_kind, created_at, tags FROM memory ORDER BY id")
        return rows.fetchall()
