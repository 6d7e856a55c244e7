"""Health: every invariant, broken by hand, is found and repaired or reported; a healthy workspace is left alone."""

import contextlib
import shutil
import sqlite3
from datetime import UTC, datetime

import pytest

from pipeline.features.diagnostics import job as health_module
from pipeline.features.diagnostics.job import examine, health
from pipeline.features.entities import store as entities
from pipeline.index.lexical import LexicalIndex
from pipeline.index.row_arrays import SessionMap
from pipeline.kernel.job_runs import JobRun
from pipeline.kernel.records import Draft, Kind, Stage
from pipeline.kernel.store import changes, invariants, meta, runs, work
from pipeline.text.tokens import search_tokens
from pipeline.write import revise
from pipeline.write.accept import accept
from tests.fakes.in_process import digest_all, fast_settings, open_worker

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A digested workspace: memories with entities, one archived, a fact with a past, a segment and a tail."""
    settings = fast_settings(tmp_path_factory.mktemp("health") / "home")
    worker = open_worker(settings)
    database = worker.databases.get("default", create=True)
    for number in range(4):
        accept(database, Draft(f"Release {number} of LoadGuard moved src/guard.py to port {8000 + number}"))
    revise.archive(database, accept(database, Draft("An archived one about LoadGuard")).id)
    for value, since in (("SQLite", "2026-01-01T00:00:00.000Z"), ("PostgreSQL", "2026-02-01T00:00:00.000Z")):
        key = {"subject": "staging", "attribute": "database", "value": value}
        accept(database, Draft(f"Staging uses {value}", Kind.KEYED_FACT, details=key, occurred_at=since))
    digest_all(worker)
    worker.context("default").rebuild_segment()
    accept(database, Draft("Written since the segment was built, about LoadGuard in src/guard.py"))
    digest_all(worker)
    database.complete_file()
    worker.close()
    return settings.paths.root


@pytest.fixture
def worker(built, tmp_path):
    """The services of a worker over a copy of that workspace."""
    home = tmp_path / "home"
    shutil.copytree(built, home)
    worker = open_worker(fast_settings(home))
    yield worker
    worker.close()


@pytest.fixture
def paths(worker):
    return worker.settings.paths.workspace("default")


@pytest.fixture
def database(worker):
    return worker.databases.get("default")


def run(database, paths, problems=None, heal=lambda: 0, **options):
    told = [].append if problems is None else problems.append
    return health(JobRun(database, NOW, **options), paths, heal, told)


def execute(database, statement, *values):
    with database.write() as db:
        db.execute(statement, values)


def dump(database):
    with contextlib.closing(sqlite3.connect(database.file)) as db:
        return list(db.iterdump())


def data_version(watcher):
    """Return a number that grows with every commit of anybody else."""
    return watcher.execute("PRAGMA data_version").fetchone()[0]


def test_a_healthy_workspace_is_not_written_to(database, paths, worker):
    with database.read() as db:
        assert entities.counts(db).mentions > 0
        assert meta.get(db, meta.SEGMENT)
    with contextlib.closing(sqlite3.connect(database.file)) as watcher:
        before = data_version(watcher)
        problems, done = [], []
        report = run(
            database,
            paths,
            problems,
            lambda: worker.context("default").repair_vectors(),
            progress=lambda n, total: done.append((n, total)),
        )
        assert (report.counts, report.more, problems) == ({}, False, [])
        assert data_version(watcher) == before
    assert done[-1][0] == done[-1][1] == len(done)
    assert examine(database, paths) == []


GONE = 4711

# What is put in, and by which check it is found; removing it leaves the store as it was.
ORPHANS = {
    "mentions": ["INSERT INTO mention VALUES (4711, 1, 'x')", "INSERT INTO mention VALUES (4712, 2, 'x')"],
    "entities": ["INSERT INTO entity VALUES (4711, 'i', 'person', 'Nobody')"],
    "edges": [
        "INSERT INTO edge VALUES (1, 'cause', 4711, 'agent', '')",
        "INSERT INTO edge VALUES (4711, 'cause', 1, 'agent', '')",
    ],
    "pairs": ["INSERT INTO pair VALUES (99, 'p', 1, 4711, 0.9, '[]', 'waiting', '', NULL)"],
    "arc_members": [
        "INSERT INTO arc_member VALUES (4711, 1, 1)",
        "INSERT INTO arc_member VALUES (1, 4711, 1)",
    ],
    "arcs": ["INSERT INTO arc VALUES (1, 'a', 't', 's', 'open', 'workspace', '', '', '', '')"],
    "impressions": ["INSERT INTO impression (id, memory_seq, at) VALUES ('s', 4711, '')"],
    "ingest_memories": ["INSERT INTO ingest_memory VALUES (1, 'h', 4711, 1, NULL)"],
    "embeddings": ["INSERT INTO embedding VALUES (4711, 'hash', 1, NULL)"],
    "tail": [
        "INSERT INTO tail VALUES (4711, 1, 'x')",
        "INSERT INTO tail SELECT seq, 1, 'x' FROM memory WHERE archived_at IS NOT NULL",
    ],
    "work": [
        "INSERT INTO work (memory_seq, stage, queued_at) VALUES (4711, 'embed', 0)",
        "INSERT INTO work (memory_seq, stage, queued_at) VALUES (1, 'unheard of', 0)",
    ],
}


@pytest.mark.parametrize("check", ORPHANS)
def test_orphaned_rows_are_found_and_removed(database, paths, check):
    before = dump(database)
    for statement in ORPHANS[check]:
        execute(database, statement)
        assert dump(database) != before
        assert check in {problem.check for problem in examine(database, paths) if problem.repairable}
        problems = []
        report = run(database, paths, problems)
        assert report.counts[check] >= 1
        assert problems == []
        assert dump(database) == before
        assert run(database, paths).counts == {}


def test_multiple_damage_is_repaired_after_any_interruption(database, paths):
    """Stopped after each piece, and crashed at each transaction, the next runs come to the same end."""
    before = dump(database)

    def break_all():
        for statements in ORPHANS.values():
            for statement in statements:
                execute(database, statement)

    for allowed in range(40):
        break_all()
        asked = iter([False] * allowed)
        report = run(database, paths, pausing=lambda asked=asked: next(asked, True))
        if not report.more:
            break
        run(database, paths)
        assert dump(database) == before
    assert allowed > len(ORPHANS)
    assert dump(database) == before


def test_a_crash_in_a_repair_leaves_the_rest_to_the_next_run(database, paths, monkeypatch):
    before = dump(database)
    for statement in ORPHANS["edges"] + ORPHANS["mentions"]:
        execute(database, statement)

    def crash(*_):
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(entities, "unlink", crash)
        with pytest.raises(ZeroDivisionError):
            run(database, paths)
    run(database, paths)
    assert dump(database) == before


def test_many_are_removed_in_small_transactions(database, paths, monkeypatch):
    before = dump(database)
    with database.write() as db:
        db.executemany("INSERT INTO embedding VALUES (?, 'hash', 1, NULL)", [(n,) for n in range(GONE, GONE + 1234)])
    sizes = []
    true = invariants.remove_rows

    def counting(db, keys, table):
        sizes.append(len(keys))
        return true(db, keys, table)

    monkeypatch.setattr(invariants, "remove_rows", counting)
    assert run(database, paths).counts == {"embeddings": 1234}
    assert max(sizes) <= health_module.PIECE
    assert dump(database) == before


def test_a_purge_that_waits_is_left_alone(database, paths):
    with database.write() as db:
        work.add(db, [GONE], [Stage.PURGE], 0)
    assert run(database, paths).counts == {}


GIVEN = {
    "impossible_memories": [
        ("UPDATE memory SET {} WHERE seq = 1", change)
        for change in (
            "kind = 'hunch'",
            "scope_kind = 'galaxy'",
            "source = 'dream'",
            "trust = 'blind'",
            "tier = 'lofty'",
            "importance = 1.5",
            "tags = '[unclosed'",
            "details = 'x'",
            "metadata = ''",
            "anchor = 'nowhere'",
            "subject = 'half a key'",
        )
    ],
    "overlapping_facts": [
        ("UPDATE memory SET {} WHERE subject IS NOT NULL AND valid_to IS NOT NULL", "valid_to = NULL"),
        ("UPDATE memory SET {} WHERE subject IS NOT NULL AND valid_to IS NOT NULL", "valid_to = '2999'"),
    ],
    "lost_survivors": [("UPDATE memory SET {} WHERE seq = 1", "merged_into = 4711")],
    "lost_histories": [
        (
            "INSERT INTO history (memory_seq, at, event, detail) VALUES ({}, 'edited', '{{}}')",
            "4711, 'then'",
        )
    ],
    "dead_letters": [
        ("INSERT INTO work (memory_seq, stage, queued_at, dead) VALUES ({}, 1)", "1, 'embed', 0"),
    ],
}


@pytest.mark.parametrize(
    ("check", "statement"), [(check, one.format(change)) for check, found in GIVEN.items() for one, change in found]
)
def test_underivable_damage_is_reported_and_not_changed(database, paths, check, statement):
    execute(database, statement)
    broken = dump(database)
    problems = []
    assert run(database, paths, problems).counts[check] == 1
    [problem] = [problem for problem in problems if problem.startswith(f"{check}: 1 ")]
    assert "LoadGuard" not in problem
    assert dump(database) == broken
    [record] = [one for one in examine(database, paths) if one.check == check]
    assert (record.count, record.repairable, record.says) == (1, False, problem)


def test_a_report_is_not_repeated_until_there_is_more(database, paths):
    def checked():
        problems = []
        with database.write() as db:
            run_id = runs.begin(db, "health", "then", 0)
        report = run(database, paths, problems)
        with database.write() as db:
            runs.end(db, run_id, "then", report.counts, None)
        return len(problems)

    assert checked() == 0
    execute(database, "INSERT INTO work (memory_seq, stage, queued_at, dead) VALUES (1, 'embed', 0, 1)")
    assert [checked(), checked()] == [1, 0]
    execute(database, "INSERT INTO work (memory_seq, stage, queued_at, dead) VALUES (2, 'embed', 0, 1)")
    assert [checked(), checked()] == [1, 0]
    execute(database, "DELETE FROM work")
    assert checked() == 0
    execute(database, "INSERT INTO work (memory_seq, stage, queued_at, dead) VALUES (1, 'embed', 0, 1)")
    assert checked() == 1


def search_words(database, paths, text):
    with database.read() as db:
        return set(LexicalIndex(paths.lexical, SessionMap()).search(db, search_tokens(text)).top(100).tolist())


def loses_its_files(database, paths):
    shutil.rmtree(paths.lexical)


def is_cut(database, paths):
    next(paths.lexical.rglob("words.vocabulary.json")).write_text("x")


def loses_a_row_of_the_tail(database, paths):
    execute(database, "DELETE FROM tail")


def claims_too_much(database, paths):
    execute(database, "UPDATE meta SET value = '4711' WHERE key = 'segment_covers'")


def wishes_the_impossible(database, paths):
    execute(database, "INSERT INTO meta VALUES ('segment_wanted', '4711')")


def is_forgotten(database, paths):
    execute(database, "DELETE FROM meta WHERE key = 'segment'")


def has_a_tail_from_the_future(database, paths):
    execute(database, "UPDATE tail SET change_seq = 4711")


@pytest.mark.parametrize(
    "harm",
    [
        loses_its_files,
        is_cut,
        loses_a_row_of_the_tail,
        claims_too_much,
        wishes_the_impossible,
        is_forgotten,
        has_a_tail_from_the_future,
    ],
)
def test_incomplete_segment_is_rebuilt(database, paths, worker, harm):
    before = search_words(database, paths, "loadguard")
    assert len(before) == 5
    harm(database, paths)
    problems = []
    assert run(database, paths, problems).counts == {"segment": 1}
    assert problems == []
    assert run(database, paths).counts == {}
    worker.context("default").rebuild_segment()
    assert run(database, paths).counts == {}
    assert search_words(database, paths, "loadguard") == before


def test_the_wish_of_a_purge_is_not_lost(database, paths):
    with database.write() as db:
        wish = str(changes.generation(db))
        meta.put(db, meta.SEGMENT_WANTED, wish)
        meta.put(db, meta.SEGMENT_COVERS, "4711")
    run(database, paths)
    with database.read() as db:
        assert meta.get(db, meta.SEGMENT_WANTED) == wish


def test_lost_vectors_are_queued_again(database, paths, worker):
    table = worker.vectors("default")
    with table.exclusive():
        table.remove([1, 2])
    assert run(database, paths, heal=lambda: worker.context("default").repair_vectors()).counts == {"vectors": 2}
    digest_all(worker)
    assert run(database, paths, heal=lambda: worker.context("default").repair_vectors()).counts == {}


def test_a_damaged_file_is_reported_and_nothing_is_repaired(database, paths, monkeypatch):
    execute(database, "INSERT INTO embedding VALUES (4711, 'hash', 1, NULL)")
    broken = dump(database)
    monkeypatch.setattr(invariants, "damage", lambda _db: ["row 3 missing from index memory_kind"])
    problems = []
    assert run(database, paths, problems, heal=lambda: pytest.fail("healed")).counts == {"damage": 1}
    assert "row 3 missing" in problems[0]
    assert [problem.check for problem in examine(database, paths)] == ["damage"]
    assert dump(database) == broken


def test_real_damage_is_seen(database, paths):
    with database.write() as db:
        db.execute("PRAGMA writable_schema=ON")
        db.execute("UPDATE sqlite_master SET rootpage = 4711 WHERE name = 'memory_session'")
    database.complete_file()
    with contextlib.closing(sqlite3.connect(database.file)) as fresh:
        assert invariants.damage(fresh)


def test_a_folder_that_others_can_enter_is_reported(database, paths):
    paths.root.chmod(0o755)
    problems = []
    assert run(database, paths, problems).counts == {"permissions": 1}
    assert str(paths.root) in problems[0]
    assert paths.root.stat().st_mode & 0o777 == 0o755
