"""A copy holds every row of its source and no other, or says which it does not."""

import contextlib
import sqlite3

import pytest

from pipeline.kernel.errors import Conflict, CopyDiffers, StoreDamaged
from pipeline.kernel.store.copying import SqliteTables, compare, copy, fingerprint
from pipeline.kernel.store.log_start import start_log
from pipeline.write import revise
from tests.fakes.homes import Home


@pytest.fixture
def stores(tmp_path):
    """A store that says something and one that is new, each by a connection whose transaction is open."""
    home = Home(tmp_path / "home")
    with contextlib.closing(home):
        start_log(home.database())
        for number in range(30):
            home.say(f"Okapis hide in the forest, says number {number}", tags=["okapi"])
        home.edit(home.find("Okapis hide in the forest, says number 3"), content="Okapis hide in the reeds")
        revise.purge(home.database(), home.find("Okapis hide in the forest, says number 29"))
        home.database("new")
    with contextlib.ExitStack() as opened:
        found = []
        for name in ("default", "new"):
            db = sqlite3.connect(home.settings.paths.workspace(name).events, isolation_level=None)
            opened.enter_context(contextlib.closing(db))
            db.execute("BEGIN")
            found.append(db)
        yield found


def test_copied_store_has_equal_rows_and_sequence_numbers(stores):
    source, target = map(SqliteTables, stores)
    seen = []
    done = copy(source, target, seen.append)
    assert done == fingerprint(source) == fingerprint(target)
    assert done.rows == source.count(source.tables) == target.count(target.tables) > 100
    # Each row is read once to be copied, and once to be compared.
    assert sum(seen) == 2 * done.rows
    assert source.marks() == target.marks() == {"memory": 30}
    assert [db.execute("SELECT count(*) FROM touched").fetchone() for db in stores] == [(0,), (0,)]
    added = "INSERT INTO turn (session_id, role, content, at) VALUES ('s', 'user', 'x', '') RETURNING seq"
    assert stores[0].execute(added).fetchone() == stores[1].execute(added).fetchone()


def test_copy_replaces_earlier_rows_of_the_target(stores):
    source, target = map(SqliteTables, stores)
    copy(source, target)
    stores[0].execute("DELETE FROM memory WHERE seq > 10")
    assert copy(source, target) == fingerprint(source)
    assert target.marks()["memory"] == 30


@pytest.mark.parametrize(
    ("change", "table", "key"),
    [
        ("UPDATE memory SET content = content || ' ' WHERE seq = 7", "memory", "7"),
        ("UPDATE memory SET seq = 77 WHERE seq = 7", "memory", "7"),
        ("DELETE FROM operation WHERE seq = 5", "operation", "5"),
        ("INSERT INTO query VALUES ('okapi', 1, '', '')", "query", "okapi"),
        ("UPDATE memory SET session_id = '' WHERE seq = 2", "memory", "2"),
        ("UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'memory'", "memory", "its counter"),
    ],
)
def test_another_row_is_named_by_its_table_and_key(stores, change, table, key):
    source, target = map(SqliteTables, stores)
    before = copy(source, target)
    stores[1].execute(change)
    with pytest.raises(CopyDiffers) as raised:
        compare(source, target)
    assert (raised.value.table, raised.value.key) == (table, key)
    assert fingerprint(target) != before


def test_a_store_of_another_version_is_not_copied(stores):
    stores[1].execute("ALTER TABLE memory ADD COLUMN mood TEXT")
    with pytest.raises(Conflict, match="memory is not the same"):
        copy(*map(SqliteTables, stores))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("UPDATE memory SET content = CAST(x'ff' AS TEXT) WHERE seq = 7", "memory: the row after 6 .* UTF-8"),
        ("UPDATE memory SET content = x'00' WHERE seq = 7", "memory 7: content contains bytes where TEXT"),
        ("UPDATE memory SET pinned = 'yes' WHERE seq = 7", "memory 7: pinned contains str where INTEGER"),
    ],
)
def test_value_invalid_in_another_engine_is_named_without_its_content(stores, change, says):
    stores[0].execute(change)
    with pytest.raises(StoreDamaged, match=says) as raised:
        copy(*map(SqliteTables, stores))
    assert "yes" not in str(raised.value)
    assert raised.value.__suppress_context__ or raised.value.__context__ is None
