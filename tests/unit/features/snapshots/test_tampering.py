"""Edits of a store by another program: health reports each kind, and no change that Reverie made.

The kinds of edits are T1 to T8 of PyPI's agent-memory-integrity.
"""

import shutil
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from config.declared import Secret
from config.paths import HomePaths
from pipeline.features.diagnostics.job import examine
from pipeline.features.export import usecases as export
from pipeline.features.ingest.fields import Item
from pipeline.features.ingest.sources import forget_items, take_items
from pipeline.features.maintenance.registry import JOBS
from pipeline.features.memories import usecases as memories
from pipeline.features.postgres import usecases as moving
from pipeline.features.snapshots.job import restore_snapshot, take_snapshot
from pipeline.features.sync import merge
from pipeline.kernel.records import Draft, EdgeDraft, EdgeKind, Kind, Revision, Scope, ScopeKind, Source, Stage, Trust
from pipeline.kernel.store import duplicates, turns, work
from pipeline.kernel.store.driver import connect
from pipeline.kernel.store.log_start import start_log
from pipeline.kernel.store.postgres.database import PostgresDatabases
from pipeline.kernel.store.postgres.server import Server
from pipeline.kernel.store.sqlite import SqliteDatabase
from pipeline.kernel.times import utc_now
from pipeline.text.normalize import content_hash
from pipeline.write import revise
from pipeline.write.accept import accept
from pipeline.write.move import share, withdraw
from pipeline.write.revise import get_existing
from tests.fakes.homes import Home
from tests.fakes.in_process import PROFILE, digest_all, dump, fast_settings, open_worker, run_job

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
}
# Only an operation log contains these records.
LOGGED_EDITS = {
    "history deleted": "DELETE FROM history",
    "history edited": "UPDATE history SET content = 'It was always so'",
    "an edge deleted": "DELETE FROM edge WHERE made_by = 'caller'",
    "an edge forged": "INSERT INTO edge SELECT a.seq, 'contradicts', b.seq, 'caller', a.created_at FROM memory a, "
    "memory b WHERE a.id = :id AND b.id = :other",
}


# For stores that keep an operation log, as after sync was added, and for both kinds.
LOGGED = pytest.mark.parametrize("has_log", [True], ids=["log"])
EITHER = pytest.mark.parametrize("has_log", [False, True], ids=["no log", "log"])


@pytest.fixture
def has_log():
    return False


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Data directories to copy, without an operation log and with it, and the ids of their memories."""
    made = {}
    for has_log in (False, True):
        home = tmp_path_factory.mktemp("filled") / "home"
        made[has_log] = home, fill(home, has_log=has_log)
    return made


@pytest.fixture
def worker(filled, has_log, tmp_path):
    home = shutil.copytree(filled[has_log][0], tmp_path / "home")
    with closing(open_worker(fast_settings(home))) as worker:
        yield worker


@pytest.fixture
def database(worker):
    return worker.databases.get("default")


@pytest.fixture
def ids(filled, has_log):
    return filled[has_log][1]


def fill(home, *, has_log=False):
    """Write to a store in every way that Reverie has, and return the ids of five memories."""
    with closing(open_worker(fast_settings(home))) as worker:
        database = worker.databases.get("default", create=True)
        if has_log:
            start_log(database)
        ids = write_memories(database)
        digest_all(worker)
        database.complete_file()
    return ids


def write_memories(database):
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
    return ids


def list_checks(worker, database, workspace="default"):
    return {problem.check for problem in examine(database, worker.settings.paths.workspace(workspace))}


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


def share_and_withdraw(worker, database, ids):
    private = accept(database, Draft("A remark of one session", scope=Scope(ScopeKind.SESSION, "s2"))).id
    share(database, private, None)
    withdraw(database, private, is_copy=False)


def move_to_other_workspace(worker, database, ids):
    memory_id = accept(database, Draft("The other project needs it")).id
    memories.move(worker.workspace("default"), worker.workspace("other"), memory_id)


def merge_and_restore(worker, database, ids):
    with database.write() as db:
        survivor, absorbed = (get_existing(db, ids[number]) for number in (1, 2))
        duplicates.merge(db, survivor, absorbed, "dedup", utc_now(), {})
    revise.restore(database, ids[2])


def read_source_again(worker, database, ids):
    workspace = worker.workspace("default")
    for text in ("Quaggas graze", "Quaggas graze at dawn"):
        take_items(workspace, "notes:zoo", [Item("a.md", text, (Draft(text, source=Source.IMPORT),))])
    forget_items(workspace, "notes:zoo", ["a.md"])


def capture_turn(worker, database, ids):
    with database.write() as db:
        seqs = turns.add(db, [turns.Message("s1", "user", "I always run `make check` before I commit.", utc_now())])
        work.add(db, seqs, [Stage.CAPTURE], 0)
    digest_all(worker)


def change_key_in_the_past(worker, database, ids):
    details = {"subject": "staging", "attribute": "database", "value": "MySQL"}
    draft = Draft("Staging used MySQL", Kind.KEYED_FACT, details=details, occurred_at="2020-01-01T00:00:00.000Z")
    revise.purge(database, accept(database, draft).id)


def run_maintenance(worker, database, ids):
    for job in JOBS:
        run_job(worker, "default", job.name)
    digest_all(worker)


def purge_merged(worker, database, ids):
    revise.purge(database, ids[2])
    digest_all(worker)


OWN_CHANGES = [
    share_and_withdraw,
    move_to_other_workspace,
    merge_and_restore,
    read_source_again,
    capture_turn,
    change_key_in_the_past,
    run_maintenance,
    purge_merged,
]


@EITHER
def test_changes_made_by_reverie_are_not_reported_as_tampering(worker, database, ids):
    assert list_checks(worker, database) == set()
    for perform in OWN_CHANGES:
        perform(worker, database, ids)
        assert list_checks(worker, database) == set(), perform.__name__
    assert list_checks(worker, worker.databases.get("other"), "other") == set()


@EITHER
def test_a_restored_snapshot_is_valid(worker, database, ids):
    paths = worker.settings.paths.workspace("default")
    taken = take_snapshot(paths, datetime.now(UTC))
    revise.purge(database, ids[1])
    accept(database, Draft("Written after the snapshot"))
    digest_all(worker)
    database.close()
    problems = []
    restore_snapshot(paths, taken.name, datetime.now(UTC), problems.append)
    with closing(SqliteDatabase(paths.events, PROFILE, create=False)) as restored:
        # Its indexes are built again.
        assert list_checks(worker, restored) <= {"segment"}
    assert problems == []


@EITHER
def test_an_imported_bundle_is_valid(worker, database, ids, tmp_path):
    bundle = tmp_path / "bundle"
    export.export_bundle(worker.settings.paths, worker.stores, bundle, ["default"], None)
    with closing(Home(tmp_path / "other")) as other:
        other.say(TEXTS[1])
        for _ in range(2):
            export.import_bundle(other.settings.paths, other.container.stores, bundle, None)
            assert list_checks(worker, other.database()) & {"log", "edits"} == set()


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_by_another_program_is_reported(worker, database, ids, edit):
    change(database, EDITS[edit], ids)
    assert "edits" in list_checks(worker, database)
    # The next writes of Reverie do not hide it.
    accept(database, Draft("Written after the edit"))
    run_job(worker, "default", "decay")
    assert "edits" in list_checks(worker, database)


@LOGGED
@pytest.mark.parametrize("with_triggers", [True, False], ids=["triggers", "no triggers"])
@pytest.mark.parametrize("edit", EDITS | LOGGED_EDITS)
def test_an_edit_of_a_store_with_a_log_is_reported(worker, database, ids, edit, with_triggers):
    change(database, (EDITS | LOGGED_EDITS)[edit], ids, with_triggers=with_triggers)
    reported = {"log"} if edit in LOGGED_EDITS else {"log", "edits"}
    assert list_checks(worker, database) >= reported
    accept(database, Draft("Written after the edit"))
    assert list_checks(worker, database) >= reported


@LOGGED
@pytest.mark.parametrize("edit", [name for name in EDITS | LOGGED_EDITS if "forged" not in name])
def test_repair_restores_texts_from_the_log(worker, database, ids, edit):
    before = read_texts(database)
    change(database, (EDITS | LOGGED_EDITS)[edit], ids)
    merge.repair(database)
    assert read_texts(database) == before
    assert not list_checks(worker, database) & {"log", "edits"}


@pytest.mark.parametrize("edit", ["T1 content", "T3 one in the middle is deleted", "T8 trust"])
def test_an_edit_of_an_encrypted_store_is_reported(encrypt_stores, tmp_path, edit):
    encrypt_stores()
    ids = fill(tmp_path / "home")
    with closing(open_worker(fast_settings(tmp_path / "home"))) as worker:
        database = worker.databases.get("default")
        assert list_checks(worker, database) == set()
        change(database, EDITS[edit], ids)
        assert list_checks(worker, database) >= {"edits"}


@EITHER
def test_a_forged_memory_goes_when_it_is_purged(worker, database, ids):
    change(database, FORGE, ids)
    revise.purge(database, FORGED)
    digest_all(worker)
    assert not list_checks(worker, database) & {"log", "edits"}


def test_nothing_in_a_store_confirms_a_purged_text(worker, database, ids):
    with database.read() as db:
        (row_hash,) = db.execute("SELECT row_hash FROM memory WHERE id = ?", (ids[2],)).fetchone()
        assert row_hash in "".join(dump(db))
    revise.purge(database, ids[2])
    digest_all(worker)
    with database.read() as db:
        assert row_hash not in "".join(dump(db))
    database.complete_file()
    assert row_hash.encode() not in database.file.read_bytes()


def test_a_copy_on_a_server_and_back_is_valid(worker, database, ids, store_url, tmp_path):
    home = worker.settings
    move(home, store_url)
    stores = PostgresDatabases(Server(store_url), PROFILE)
    served = stores.get("default")
    assert list_checks(worker, served) == set()
    revise.edit(served, ids[1], Revision(content="Release 1 moved the port to 9001", tags=("served",)))
    revise.archive(served, ids[3])
    accept(served, Draft("Written on the server"))
    assert "edits" not in list_checks(worker, served)
    stores.close()
    move(replace(home, store=Secret(store_url)), "sqlite", home=tmp_path / "returned")
    file = HomePaths(tmp_path / "returned").workspace("default").events
    with closing(SqliteDatabase(file, PROFILE, create=False)) as returned:
        assert "edits" not in list_checks(worker, returned)


def test_an_edit_of_a_store_on_a_server_is_reported(worker, database, ids, store_url):
    move(worker.settings, store_url)
    stores = PostgresDatabases(Server(store_url), PROFILE)
    served = stores.get("default")
    with served.write() as db:
        db.execute("UPDATE memory SET trust = 'trusted' WHERE source = 'import'")
    assert "edits" in list_checks(worker, served)
    stores.close()


def move(settings, target, **options):
    with moving.open_move(settings, target, **options) as opened:
        assert [part.problem for part in moving.move_parts(opened) if part.problem] == []


def read_texts(database):
    with database.read() as db:
        rows = db.execute("SELECT id, content, trust, source, scope_kind, created_at, tags FROM memory ORDER BY id")
        return rows.fetchall()
