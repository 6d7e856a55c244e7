"""One store in two schemas: what changes in SQLite's must change in PostgreSQL's, and no row is anybody else's."""

import re
import sqlite3
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files

import pytest
from sqlite_utils import Migrations

from pipeline.kernel.records import Draft, EdgeKind, Filter, Stage
from pipeline.kernel.store import edges, home_file, memories, oplog, work
from pipeline.kernel.store.log_start import start_log
from pipeline.kernel.store.migrations import MIGRATIONS, make_ready
from pipeline.kernel.store.postgres.database import PostgresDatabases
from pipeline.kernel.store.postgres.server import Server
from pipeline.kernel.store.replicated_records import MEMORY, Key
from tests.fakes.in_process import PROFILE, accept_batch, scratch_folder

TYPES = {"INTEGER": "bigint", "REAL": "double precision", "FLOAT": "double precision", "TEXT": "text"}
# Of one engine alone: what numbers rows, and what files tell by being there.
OF_A_SERVER = {"numbered", "workspace", "home_value", "migration"}
OF_A_FILE = {"_sqlite_migrations"}
# In the place of one of SQLite's that holds a key of any length.
INDEXES_OF_A_SERVER = {"ingest_item_once": ("source", "expression"), "ingest_item_key": ("key",)}
INSTEAD_OF = ("source", "key")


@dataclass
class Table:
    """A table: columns as (name, type, whether it must hold something, default), and indexes as name → columns."""

    columns: list[tuple[str, str, bool, str | None]] = field(default_factory=list)
    unique: set[tuple[str, ...]] = field(default_factory=set)
    indexes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    triggers: set[str] = field(default_factory=set)


@contextmanager
def migrated(migrations: Migrations):
    with scratch_folder() as folder:
        file = folder / "store.sqlite"
        connection = sqlite3.connect(file, isolation_level=None)
        make_ready(connection, file, migrations)
        yield connection
        connection.close()


def read_sqlite(db):
    found = {}
    names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*'"
    for (name,) in db.execute(names).fetchall():
        table = found[name] = Table()
        key = []
        for _, column, kind, needed, default, place in db.execute(f"PRAGMA table_info({name})"):
            table.columns.append((column, TYPES[kind], bool(needed or place), default))
            key += [(place, column)] if place else []
        table.unique.add(tuple(column for _, column in sorted(key)))
        for _, index, is_unique, origin, _ in db.execute(f"PRAGMA index_list({name})").fetchall():
            columns = tuple(row[2] or "expression" for row in db.execute(f"PRAGMA index_info({index})"))
            if is_unique:
                table.unique.add(columns)
            if origin == "c":
                table.indexes[index] = columns
        sought = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?"
        table.triggers = {trigger for (trigger,) in db.execute(sought, (name,))}
    return found


def read_postgres(db):
    found = {}
    for name, column, kind, needed, default in db.execute(
        "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, "
        "pg_get_expr(d.adbin, d.adrelid) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 "
        "LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum "
        "WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' ORDER BY c.relname, a.attnum"
    ):
        said = None if default is None or default.startswith("next_") else default.replace("::text", "")
        found.setdefault(name, Table()).columns.append((column, kind, bool(needed), said))
    for name, index, is_unique, is_key, columns in db.execute(
        "SELECT t.relname, i.relname, x.indisunique, c.oid IS NOT NULL, (SELECT string_agg("
        "CASE WHEN x.indkey[k - 1] = 0 THEN 'expression' ELSE pg_get_indexdef(i.oid, k, true) END, ' ' ORDER BY k) "
        "FROM generate_series(1, x.indnkeyatts) k) FROM pg_index x JOIN pg_class t ON t.oid = x.indrelid "
        "JOIN pg_class i ON i.oid = x.indexrelid LEFT JOIN pg_constraint c ON c.conindid = i.oid "
        "WHERE t.relnamespace = current_schema()::regnamespace AND t.relkind = 'r'"
    ):
        listed = tuple(columns.replace('"', "").split(" "))
        if index in INDEXES_OF_A_SERVER:
            assert listed == (("workspace",) if is_unique else ()) + INDEXES_OF_A_SERVER[index]
            listed = ("workspace", *INSTEAD_OF)
        elif not is_key:
            found[name].indexes[index] = listed
        if is_unique:
            found[name].unique.add(listed)
    for name, trigger in db.execute(
        "SELECT c.relname, t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
        "WHERE c.relnamespace = current_schema()::regnamespace AND NOT t.tgisinternal AND t.tgname <> 'gone'"
    ):
        found[name].triggers.add(trigger)
    return found


def is_of_a_workspace(table):
    return any(name == "workspace" and "reverie.workspace" in str(default) for name, _, _, default in table.columns)


def without_workspace(table):
    """Return a table as it would be if there were one workspace; fail where the workspace is not what leads."""
    [(_, kind, needed, default)] = [column for column in table.columns if column[0] == "workspace"]
    columns = [column for column in table.columns if column[0] != "workspace"]
    assert (kind, needed) == ("text", True)
    assert re.fullmatch(r"current_setting\('reverie.workspace'\)", default)
    for listed in (*table.unique, *table.indexes.values()):
        assert listed[0] == "workspace", listed
    indexes = {name: listed[1:] for name, listed in table.indexes.items()}
    return Table(columns, {listed[1:] for listed in table.unique}, indexes, table.triggers)


@pytest.fixture
def url(postgres, ready_url):
    url = postgres.make_database(ready_url)
    yield url
    postgres.drop_database(url)


@pytest.fixture
def server(url):
    server = Server(url)
    yield server
    server.close()


@pytest.fixture
def databases(server):
    return PostgresDatabases(server, PROFILE)


def compare(file, served):
    assert served.columns == file.columns
    assert served.unique == file.unique
    assert served.triggers == file.triggers
    assert served.indexes.keys() == file.indexes.keys()
    # SQLite ends every index with the row's key; PostgreSQL is told where that matters.
    for name, columns in file.indexes.items():
        assert served.indexes[name][: len(columns)] == columns, name


def test_a_workspace_has_the_same_tables_in_both(server):
    with migrated(MIGRATIONS) as db, server.write() as home:
        # A server always has the triggers, a file from its first exchange on.
        db.executescript(files("pipeline.kernel.store").joinpath("log_triggers.sql").read_text(encoding="utf-8"))
        in_file, served = read_sqlite(db), read_postgres(home)
    of_workspaces = {name for name, table in served.items() if is_of_a_workspace(table)}
    assert in_file.keys() - OF_A_FILE == of_workspaces - OF_A_SERVER
    for name in sorted(in_file.keys() - OF_A_FILE):
        compare(in_file[name], without_workspace(served[name]))


def test_server_and_file_stores_have_equal_tables(server):
    with migrated(home_file.MIGRATIONS) as db, server.write() as home:
        in_file, served = read_sqlite(db), read_postgres(home)
    of_homes = {name for name, table in served.items() if not is_of_a_workspace(table)}
    assert in_file.keys() - OF_A_FILE == of_homes - OF_A_SERVER
    for name in sorted(in_file.keys() - OF_A_FILE):
        compare(in_file[name], served[name])


def test_every_table_of_workspaces_is_kept_apart(server):
    with server.write() as home:
        rows = home.execute(
            "SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity, count(p.oid) FROM pg_class c "
            "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'workspace' AND a.atthasdef "
            "LEFT JOIN pg_policy p ON p.polrelid = c.oid AND p.polcmd = '*' "
            "WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' GROUP BY 1, 2"
        ).fetchall()
    assert len(rows) > 30
    assert [row for row in rows if row[1:] != (1, 1)] == []


def test_a_statement_that_names_no_workspace_reaches_its_own_alone(databases):
    alpha, beta = (databases.get(name, create=True) for name in ("alpha", "beta"))
    for database in (alpha, beta):
        with database.write() as db:
            db.execute("INSERT INTO incognito VALUES ('s', '2026')")
    with alpha.write() as db:
        assert db.execute("UPDATE incognito SET since = '2027'").rowcount == 1
        assert db.execute("DELETE FROM incognito WHERE workspace = 'beta'").rowcount == 0
    with pytest.raises(sqlite3.OperationalError, match="row-level security"), alpha.write() as db:
        db.execute("INSERT INTO incognito (session_id, since, workspace) VALUES ('t', '2026', 'beta')")
    with beta.read() as db:
        assert db.execute("SELECT * FROM incognito").fetchall() == [("s", "2026", "beta")]


def test_a_connection_that_has_no_workspace_reaches_none(server):
    with server.write() as home, pytest.raises(sqlite3.OperationalError, match=r"reverie\.workspace"):
        home.execute("SELECT count(*) FROM memory")


def test_rows_are_numbered_separately_in_each_workspace(databases):
    alpha, beta = (databases.get(name, create=True) for name in ("alpha", "beta"))
    say = "INSERT INTO turn (session_id, role, content, at) VALUES ('s', 'user', 'hello', '2026') RETURNING seq"
    with alpha.write() as db:
        assert [db.execute(say).fetchone()[0] for _ in range(3)] == [1, 2, 3]
        db.execute("DELETE FROM turn WHERE seq = 3")
        assert db.execute(say).fetchone() == (4,)
        db.execute("DELETE FROM turn")
    with alpha.write() as db, beta.write() as other:
        # What was gone is not given out again, and what is another's is not counted.
        assert (db.execute(say).fetchone(), other.execute(say).fetchone()) == ((5,), (1,))


def test_a_number_that_may_come_again_does(databases):
    note = "INSERT INTO action (at, session_id, tool, type, target, ok) VALUES ('2026', 's', 't', 'edit', 'f', 1)"
    with databases.get("alpha", create=True).write() as db:
        db.executemany(note, [()] * 3)
        db.execute("DELETE FROM action WHERE seq = 3")
        assert db.execute(f"{note} RETURNING seq").fetchone() == (3,)


class Explaining:
    """A connection that tells of each statement how the server would look for its rows."""

    def __init__(self, db):
        self.db = db
        self.conditions = ""

    def execute(self, statement, values=()):
        lines = [row[0] for row in self.db.execute(f"EXPLAIN (COSTS OFF) {statement}", values)]
        self.conditions += "\n".join(line for line in lines if "Index Cond" in line or "Order" in line)
        return self.db.execute(statement, values)


LOOKED_UP = {
    "id = 'a'": lambda db: memories.get(db, "a"),
    "seq = ANY ('{1,2}'": lambda db: memories.by_seqs(db, [1, 2]),
    "id = ANY ('{a,b}'": lambda db: memories.by_ids(db, ["a", "b"]),
    "seq = ANY ('{3,4}'": lambda db: memories.filter_showable(db, [3, 4], Filter()),
    "seq < '7'": lambda db: memories.page(db, Filter(), 10, 7),
    "stage = 'embed'": lambda db: work.find_next_due(db, Stage.EMBED),
    "memory_id = ANY ('{a,b}'": lambda db: oplog.fold(db, [Key(MEMORY, "a"), Key(MEMORY, "b")]),
    "to_seq = g.seq": lambda db: edges.list_superseding(db, [1, 2]),
}


def test_lookups_use_an_index_restricted_to_the_workspace(databases, server):
    """A condition that might tell of another's row by failing would be tried on no index."""
    alpha = databases.get("alpha", create=True)
    start_log(alpha)
    accept_batch(alpha, [Draft(f"Note {number} about the port of staging") for number in range(800)])
    with alpha.write() as db:
        for seq in range(2, 800):
            edges.add(db, seq, EdgeKind.SUPERSEDES, seq - 1, "edges-job", "2026")
    with server.write() as home:
        home.execute("ANALYZE memory, work, edge, operation")
    with alpha.read() as db:
        # So little is there that reading all of it would be as fast.
        for way in ("seqscan", "hashjoin", "mergejoin"):
            db.execute(f"SET LOCAL enable_{way} = off")
        found = {}
        for sought, read in LOOKED_UP.items():
            explaining = Explaining(db)
            read(explaining)
            found[sought] = explaining.conditions
    unseen = {sought: said for sought, said in found.items() if sought not in said or "workspace = " not in said}
    assert unseen == {}
