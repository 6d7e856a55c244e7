"""A data directory of commit d0a0c2d4 opens with every row, plain or encrypted; what other commits wrote is refused."""

import json
import sqlite3
from contextlib import closing
from functools import partial

import pytest

from pipeline.kernel.errors import StoreUnavailable
from pipeline.kernel.store import driver, row_hashes
from pipeline.kernel.store.development_data import FIRST_SCHEMA
from pipeline.kernel.store.home_file import HomeFile
from pipeline.kernel.store.key import StoreKey
from pipeline.kernel.store.migrations import MIGRATIONS, is_migrated, make_ready
from tests.fakes.kept_directories import OLDEST, unpack_directory

pytestmark = pytest.mark.files

HOME_FILES = ["operations.sqlite", "peers.sqlite", "people.sqlite", "transcripts.sqlite"]
WORKSPACES = [f"workspaces/{name}/events.sqlite" for name in ("default", "me", "project-1afbf223")]
# What the import drops, changes or adds; every other value stays as it is.
DROPPED = {"bridge", "useful_term", "transcript", "_sqlite_migrations", "sqlite_sequence"}
FORGOTTEN = {"session_branches", "known_branches"}
CHANGED = {
    "agent_session": {"read_to", "parent"},
    "embedding": {"statements"},
    "impression": {"acts"},
    "meta": {"value"},
    "memory": {"scope_kind", "scope_id", "tags", "archived_at", "row_hash"},
    "person": {"email", "issuer", "subject"},
    "transcript_file": {"mark"},
}


@pytest.fixture(params=["plain", "encrypted"])
def directory(request, tmp_path, encrypt_stores):
    """The data directory; its files are encrypted as `reverie store encrypt` of that commit left them, or plain."""
    folder = unpack_directory(OLDEST, tmp_path / "home")
    if request.param == "encrypted":
        encrypt_stores()
        for name in (*HOME_FILES, *WORKSPACES):
            with closing(driver.connect(folder / name)) as source:
                driver.export(source, folder / "encrypted", StoreKey(folder, "5a" * 32))
            (folder / "encrypted").replace(folder / name)
    return folder


def open_store(file):
    connection = driver.connect(file)
    make_ready(connection, file, MIGRATIONS, snapshots=file.parent / "snapshots")
    return connection


def read_rows(db):
    """Return the rows of each table, each as a dictionary, in the order of their values."""
    found = {}
    for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        names = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        rows = [dict(zip(names, row, strict=True)) for row in db.execute(f"SELECT * FROM {table}")]
        found[table] = sorted(rows, key=repr)
    return found


def leave_out(rows, columns):
    kept = ({name: value for name, value in row.items() if name not in columns} for row in rows)
    return sorted(kept, key=repr)


def describe(db):
    """Return each table's columns and the statements of its indexes and triggers."""
    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    indexes = "SELECT name, sql FROM sqlite_master WHERE type IN ('index', 'trigger') AND sql NOT NULL"
    return (
        {table: db.execute(f"PRAGMA table_info({table})").fetchall() for table in tables},
        {name: " ".join(sql.split()) for name, sql in db.execute(indexes) if "_sqlite_migrations" not in name},
    )


def check_rows(before, after):
    for table in before.keys() - DROPPED:
        changed = CHANGED.get(table, set())
        assert len(after.get(table, [])) == len(before[table]), table
        assert leave_out(after.get(table, []), changed) == leave_out(before[table], changed), table


@pytest.mark.parametrize("name", WORKSPACES)
def test_a_store_keeps_its_rows(directory, name):
    with closing(driver.connect(directory / name)) as db:
        before = read_rows(db)
    assert not is_migrated(directory / name, MIGRATIONS)
    with closing(open_store(directory / name)) as db:
        after = read_rows(db)
    before["meta"] = [row for row in before["meta"] if row["key"] not in FORGOTTEN]
    # The moved memories are operations for other machines.
    after["operation"] = [row for row in after["operation"] if row in before["operation"]]
    check_rows(before, after)
    assert [row["name"] for row in after["_sqlite_migrations"]] == [FIRST_SCHEMA]
    assert is_migrated(directory / name, MIGRATIONS)


def test_the_rows_of_the_other_files_are_in_one_file(directory):
    before = {}
    for name in HOME_FILES:
        with closing(driver.connect(directory / name)) as db:
            before |= read_rows(db)
    for _ in range(2):
        with closing(HomeFile(directory / "home.sqlite")) as home, home.read() as db:
            check_rows(before, read_rows(db))
    assert [name for name in HOME_FILES if (directory / name).exists()] == []


def test_an_import_that_is_interrupted_is_repeated(directory, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("pipeline.kernel.store.home_file.erase", fail)
        with pytest.raises(sqlite3.OperationalError), HomeFile(directory / "home.sqlite").read():
            pass
    with closing(HomeFile(directory / "home.sqlite")) as home, home.read() as db:
        assert len(db.execute("SELECT * FROM person").fetchall()) == 4
    assert [name for name in HOME_FILES if (directory / name).exists()] == []


@pytest.mark.parametrize("name", WORKSPACES)
def test_a_store_gets_the_tables_of_a_new_one(directory, tmp_path, name):
    with closing(driver.connect(tmp_path / "new.sqlite", "rwc")) as db:
        make_ready(db, tmp_path / "new.sqlite", MIGRATIONS)
        tables, statements = describe(db)
    with closing(open_store(directory / name)) as db:
        found_tables, found_statements = describe(db)
    # It has exchanged with another machine, so it keeps a log.
    assert found_statements.pop("memory_made")
    found_statements = {key: sql for key, sql in found_statements.items() if not sql.startswith("CREATE TRIGGER")}
    assert found_tables == tables
    assert found_statements == statements


def test_memories_of_branches_become_those_of_the_workspace_with_a_tag(directory):
    with closing(open_store(directory / "workspaces/default/events.sqlite")) as db:
        columns = "content, scope_kind, scope_id, tags, archived_at IS NULL"
        rows = db.execute(f"SELECT {columns} FROM memory WHERE tags LIKE '%branch:%'")
        tagged = {content: (kind, owner, json.loads(tags), active) for content, kind, owner, tags, active in rows}
        assert row_hashes.list_edited(db) == []
    assert tagged["Deploys of the billing service need the VPN"] == (
        "workspace", "", ["billing", "branch:gr-n/vpn"], True,
    )  # fmt: skip
    # A repetition of the workspace's text.
    assert tagged["The staging database listens on port 6543"] == ("workspace", "", ["branch:main"], False)


def test_the_pairs_of_names_are_found_again_and_the_rest_is_gone(directory):
    with closing(open_store(directory / "workspaces/default/events.sqlite")) as db:
        assert db.execute("SELECT count(*) FROM bridge").fetchone() == (0,)
        assert db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'useful_term'").fetchone() == (0,)
        values = dict(db.execute("SELECT key, value FROM meta"))
    assert not FORGOTTEN & values.keys()


def test_subjects_move_to_their_columns(directory):
    with closing(driver.connect(directory / "people.sqlite")) as db:
        stored = ("https://id.example c 7", "https://id.example d@example.com")
        for number, email in enumerate(stored):
            db.execute("INSERT INTO person VALUES (?, '', 0, '', NULL, ?, NULL)", (str(number), email))
    with closing(HomeFile(directory / "home.sqlite")) as home, home.read() as db:
        people = {row[0]: row[1:] for row in db.execute("SELECT id, email, issuer, subject FROM person")}
    assert people == {
        "0": (None, "https://id.example", "c 7"),
        "1": (None, "https://id.example", "d@example.com"),
        "berta": (None, None, None),
        "carl": (None, None, None),
        "dora": ("dora@example.org", None, None),
        "emil": (None, "", "subject-8"),
    }


def test_transcript_marks_that_may_contain_text_are_dropped(directory):
    with closing(driver.connect(directory / "transcripts.sqlite")) as db:
        db.execute("INSERT INTO transcript_file (name, agent, mark) VALUES ('s1', 'hooks', 'x')")
    with closing(HomeFile(directory / "home.sqlite")) as home, home.read() as db:
        marks = db.execute(
            "SELECT mark IS NULL, count(*) FROM transcript_file WHERE size NOT NULL OR name = 's1' GROUP BY 1"
        )
        assert dict(marks.fetchall()) == {0: 1, 1: 1}


@pytest.mark.parametrize("name", ["people.sqlite", "workspaces/me/events.sqlite"])
def test_a_file_of_another_commit_is_refused_and_stays(directory, name):
    file = directory / name
    with closing(driver.connect(file)) as db:
        db.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) "
            "SELECT migration_set, 'z015_given_up', '2026' FROM _sqlite_migrations LIMIT 1"
        )
        before = read_rows(db)
    opens = partial(open_store, file) if name in WORKSPACES else HomeFile(directory / "home.sqlite").write
    with pytest.raises(StoreUnavailable, match="another version of Reverie"):
        opens()
    with closing(driver.connect(file)) as db:
        assert read_rows(db) == before


def test_an_import_that_fails_changes_nothing(directory, monkeypatch):
    file = directory / "workspaces/default/events.sqlite"
    with closing(driver.connect(file)) as db:
        before = read_rows(db)
    monkeypatch.setattr("pipeline.kernel.store.development_data.row_hashes.update", fail)
    with pytest.raises(StoreUnavailable, match="undone"):
        open_store(file)
    with closing(driver.connect(file)) as db:
        assert read_rows(db) == before


def fail(*_):
    raise sqlite3.OperationalError("no")
