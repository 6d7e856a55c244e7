"""A PostgreSQL server as source or target of a move of stores."""

import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from sqlite3 import Connection
from typing import Final, cast

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from pipeline.kernel.errors import Conflict, FieldError, InvalidField, ReverieError, StoreUnavailable
from pipeline.kernel.store.copying import ConfigTable, Fingerprint, Row, StoreTables, Table, fingerprint
from pipeline.kernel.store.database import OpenTransaction
from pipeline.kernel.store.home_values import CONFIG, HomeValues
from pipeline.kernel.store.moves import HOME_PARTS, Part, PartKind, StoreLocation, forget_workspace, list_tables
from pipeline.kernel.store.postgres import schema
from pipeline.kernel.store.postgres.connection import PostgresConnection, failure_of
from pipeline.kernel.store.postgres.server import RECHECK_S, Server

# How long to wait for a writer of a workspace.
_PATIENCE = "5s"
# The server lists a connection for a moment after its client has closed it.
_DISCONNECTED_WITHIN_S = 1.0
# No limits for statements that copy a table, and for the pauses between them.
_UNHURRIED = "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0; SELECT 1"
_READ = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {_UNHURRIED}"
_WRITE = f"BEGIN; SET LOCAL lock_timeout = '{_PATIENCE}'; {_UNHURRIED}"
_TABLES_OF_WORKSPACES = """
SELECT table_name FROM information_schema.columns WHERE table_schema = current_schema() AND column_name = 'workspace'
"""
_OTHERS = """
SELECT count(*), min(coalesce(host(client_addr), 'this machine')) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'reverie' AND pid <> pg_backend_pid()
"""


class PostgresLocation(StoreLocation):
    """The database at an address; its password is never shown."""

    def __init__(self, url: str) -> None:
        self.name = describe_address(url)
        self._server = Server(url)
        self._writer: PostgresConnection | None = None

    def check_unused(self) -> None:
        """Raise Conflict, which names the addresses, while other Reverie processes are connected to the database."""
        until = time.monotonic() + _DISCONNECTED_WITHIN_S
        count, host = self._count_others()
        while count and time.monotonic() < until:
            time.sleep(RECHECK_S)
            count, host = self._count_others()
        if count:
            raise Conflict(
                f"{count} Reverie connections to {self.name} are open, from {host}: stop every server and "
                "worker that uses it"
            )

    def _count_others(self) -> tuple[int, str]:
        """Return the number of other connections of Reverie, and an address of them."""
        with _typed_errors(), self._server.begun(_READ, of_workspace=False) as (db, _):
            count, host = db.execute(_OTHERS).fetchone() or (0, "")
            return count, host

    def list_parts(self) -> list[Part]:
        """List the existing parts."""
        with _typed_errors(), self._server.begun(_READ, of_workspace=False) as (db, _):
            workspaces = [Part(name) for (name,) in db.execute("SELECT id FROM workspace ORDER BY id")]
            names = db.execute("SELECT name FROM home_value WHERE starts_with(name, ?) ORDER BY name", (CONFIG,))
            configs = [Part(name.removeprefix(CONFIG), PartKind.SETTINGS) for (name,) in names]
            return [*(part for part in HOME_PARTS if _exists(db, part, _open(db, part))), *configs, *workspaces]

    @contextmanager
    def reading(self, part: Part) -> Iterator[StoreTables | None]:
        """Read a snapshot of a part during a block; None if it does not exist."""
        with _typed_errors(), self._server.begun(_READ, of_workspace=False) as (db, _), _opened(db, part) as tables:
            yield tables if _exists(db, part, tables) else None

    @contextmanager
    def writing(self, part: Part, before: Fingerprint | None) -> Iterator[StoreTables]:
        """Replace a part by the content that a block writes, in one transaction."""
        with _typed_errors(), self._server.begun(_WRITE, of_workspace=False) as (db, _):
            # Take the locks of every write: no other write to the workspace, no change of the schema.
            db.execute(f"SELECT {schema.LOCK_SCHEMA}, pg_advisory_xact_lock(hashtextextended(?, 0))", (part.name,))
            with _opened(db, part) as tables:
                if (fingerprint(tables) if _exists(db, part, tables) else None) != before:
                    raise Conflict(f"{part.name} was written to at {self.name} meanwhile")
                self._writer = db
                try:
                    yield tables
                finally:
                    self._writer = None
                if isinstance(tables, ConfigTable):
                    _values(db).put(CONFIG + part.name, tables.text)
            if part.kind is PartKind.WORKSPACE:
                db.execute(
                    "INSERT INTO workspace (id, commits, written_ns) VALUES (?, 1, ?) ON CONFLICT (id) DO UPDATE "
                    "SET commits = workspace.commits + 1, written_ns = excluded.written_ns",
                    (part.name, time.time_ns()),
                )
            db.run_script("COMMIT")

    def delete(self, workspace_id: str) -> None:
        """Delete the rows of a workspace in all tables, and its settings, in one transaction."""
        with _typed_errors(), self._server.begun(_WRITE, of_workspace=False) as (db, _):
            db.execute(f"SELECT {schema.LOCK_SCHEMA}, pg_advisory_xact_lock(hashtextextended(?, 0))", (workspace_id,))
            db.execute("SELECT set_config('reverie.workspace', ?, true)", (workspace_id,))
            for (table,) in db.execute(_TABLES_OF_WORKSPACES).fetchall():
                db.execute(forget_workspace(table), {"old": workspace_id})
            db.execute("DELETE FROM home_value WHERE name = ?", (CONFIG + workspace_id,))
            db.execute("DELETE FROM workspace WHERE id = ?", (workspace_id,))
            db.run_script("COMMIT")

    def settle(self) -> None:
        """Analyze the tables, so that the server plans with current statistics."""
        with _typed_errors(), self._server.begun(_WRITE, of_workspace=False) as (db, _):
            db.execute("ANALYZE")
            db.run_script("COMMIT")

    def known(self, part: Part, home: str) -> set[str]:
        """Return the digest of a part when it was last equal here and in a data directory."""
        with _typed_errors(), self._server.begun(_READ, of_workspace=False) as (db, _):
            digest = _values(db).get(_name_note(part, home))
            return set() if digest is None else {digest}

    def note(self, part: Part, home: str, digest: str) -> None:
        """Record the digest at which a part is equal here and in a data directory, in the transaction of its rows."""
        assert self._writer is not None
        _values(self._writer).put(_name_note(part, home), digest)

    def close(self) -> None:
        """Close every connection."""
        self._server.close()


def describe_address(url: str) -> str:
    """Return an address without its password; raise InvalidField for an invalid address."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        # Not the library's message, which quotes the address.
        raise InvalidField(FieldError("to", "is not a PostgreSQL URL; use postgresql://USER@HOST/DATABASE")) from None
    host, port = parts.get("host") or "localhost", parts.get("port")
    user = f"{parts['user']}@" if parts.get("user") else ""
    return f"postgresql://{user}{host}{f':{port}' if port else ''}/{parts.get('dbname') or ''}"


def _values(db: PostgresConnection) -> HomeValues:
    return HomeValues(OpenTransaction(cast("Connection", db)))


def _open(db: PostgresConnection, part: Part) -> "PostgresTables":
    return PostgresTables(db.raw, list_tables(part), None if part.kind is PartKind.HOME else part.name)


@contextmanager
def _opened(db: PostgresConnection, part: Part) -> Iterator[StoreTables]:
    if part.kind is not PartKind.SETTINGS:
        yield _open(db, part)
        return
    with ConfigTable.opened(part.name, _values(db).get(CONFIG + part.name) or "") as table:
        yield table


def _exists(db: PostgresConnection, part: Part, tables: StoreTables) -> bool:
    if part.kind is PartKind.HOME:
        return tables.count(tables.tables) > 0
    if part.kind is PartKind.SETTINGS:
        return _values(db).get(CONFIG + part.name) is not None
    return db.execute("SELECT 1 FROM workspace WHERE id = ?", (part.name,)).fetchone() is not None


def _name_note(part: Part, home: str) -> str:
    return f"moved {home} {part.key}"


@contextmanager
def _typed_errors() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        failure = failure_of(error)
        raise failure if isinstance(failure, ReverieError) else StoreUnavailable(str(failure)) from error


# The workspace of a row; some tables of the data directory have a column of this name with another meaning.
_WORKSPACE: Final = "workspace"
_TYPES: Final = {"INTEGER": "int8", "REAL": "float8", "TEXT": "text"}


class PostgresTables(StoreTables):
    """The tables of a workspace, or without one of the data directory, in a transaction of the caller.

    Reads see one snapshot if that transaction is REPEATABLE READ. `tables` are those of SQLite.
    """

    def __init__(self, db: psycopg.Connection[Row], tables: Sequence[Table], workspace: str | None) -> None:
        self._db = db
        self._workspace = workspace
        # Until the transaction ends.
        db.execute("SELECT set_config('reverie.workspace', %s, true)", (workspace or "",))
        columns_by_table = self._list_columns(tables)
        self.tables = [
            table
            if set(columns_by_table[table.name]) == set(table.columns)
            else replace(table, columns=columns_by_table[table.name])
            for table in tables
            if table.name in columns_by_table
        ]

    def count(self, tables: Iterable[Table]) -> int:
        """Count the rows of tables."""
        counts = (self._compose("(SELECT count(*) FROM {table} WHERE {mine})", table) for table in tables)
        row = self._db.execute(sql.SQL("SELECT 0 + {}").format(sql.SQL(" + ").join(counts))).fetchone()
        assert row is not None
        return int(row[0])

    def rows(self, table: Table) -> Generator[Row, None, None]:
        """Iterate over a table's rows in key order."""
        statement = sql.SQL(
            "COPY (SELECT {columns} FROM {table} WHERE {mine} ORDER BY {key}) TO STDOUT (FORMAT BINARY)"
        ).format(
            # SQLite has no negative zero.
            columns=sql.SQL(", ").join(
                sql.SQL("{0} + 0 AS {0}" if kind == "REAL" else "{}").format(sql.Identifier(name))
                for name, kind in zip(table.columns, table.types, strict=True)
            ),
            table=sql.Identifier(table.name),
            mine=self._mine(),
            key=sql.SQL(", ").join(sql.Identifier(table.columns[position]) for position in table.key),
        )
        with self._db.cursor() as cursor, cursor.copy(statement) as copying:
            copying.set_types([_TYPES[kind] for kind in table.types])
            yield from copying.rows()

    def marks(self) -> dict[str, int]:
        """Return the highest number of each table that never reuses numbers, if the row with that number is gone."""
        once = [table for table in self.tables if table.once]
        marks = ((table.name, self._find_mark(table)) for table in once)
        return {name: last for name, last in marks if last}

    def clear(self, tables: Iterable[Table]) -> None:
        """Delete every row of tables, and reset their counters."""
        statements = [self._compose("DELETE FROM {table} WHERE {mine}", table) for table in tables]
        self._db.execute(sql.SQL("; ").join(statements))

    def fill(self, table: Table, rows: Iterable[Row]) -> None:
        """Insert rows into an empty table."""
        rest = iter(rows)
        first = next(rest, None)
        if first is None:
            return
        try:
            # COPY into the table itself is forbidden: row level security separates the workspaces.
            self._do("CREATE TEMP TABLE incoming ON COMMIT DROP AS SELECT {columns} FROM {table} WITH NO DATA", table)
            with self._db.cursor() as cursor, cursor.copy("COPY incoming FROM STDIN") as copying:
                for row in chain((first,), rest):
                    copying.write_row(row)
            self._do("INSERT INTO {table} ({columns}) SELECT {columns} FROM incoming; DROP TABLE incoming", table)
        except (psycopg.IntegrityError, psycopg.errors.ProgramLimitExceeded) as error:
            # The first line of the error quotes no value.
            raise Conflict(f"PostgreSQL rejects a row of {table.name}: {error.diag.message_primary}") from None

    def set_counters(self, marks: Mapping[str, int]) -> None:
        """Set the counters of tables."""
        if self._workspace is None:
            for table in self.tables:
                self._put_sequence(table, marks.get(table.name, 0))
            return
        self._db.execute("DELETE FROM numbered WHERE workspace = %s", (self._workspace,))
        for name, last in marks.items():
            self._db.execute(
                "INSERT INTO numbered (name, last, workspace) VALUES (%s, %s, %s)", (name, last, self._workspace)
            )

    def find_unsupported_value(self, table: Table, row: Row) -> str | None:
        """Return the value that PostgreSQL cannot store: a text with a NUL character."""
        if not any(type(value) is str and "\0" in value for value in row):
            return None
        held = (name for name, value in zip(table.columns, row, strict=True) if type(value) is str and "\0" in value)
        return f"{next(held)} contains a NUL character, which PostgreSQL cannot store"

    def _list_columns(self, tables: Iterable[Table]) -> dict[str, tuple[str, ...]]:
        rows = self._db.execute(
            "SELECT c.relname, array_agg(a.attname::text ORDER BY a.attnum) FROM pg_class c "
            "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped "
            "WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = ANY(%s) GROUP BY c.relname",
            ([table.name for table in tables],),
        )
        if self._workspace is None:
            return {name: tuple(columns) for name, columns in rows}
        return {name: tuple(column for column in columns if column != _WORKSPACE) for name, columns in rows}

    def _find_mark(self, table: Table) -> int | None:
        if self._workspace is None:
            row = self._db.execute("SELECT pg_sequence_last_value(%s::regclass)", (self._find_sequence(table),))
        else:
            row = self._db.execute(
                "SELECT last FROM numbered WHERE name = %s AND workspace = %s", (table.name, self._workspace)
            )
        last = (row.fetchone() or (None,))[0]
        highest = self._ask("SELECT coalesce(max(seq), 0) FROM {table} WHERE {mine}", table)[0]
        return last if last is not None and last > highest else None

    def _find_sequence(self, table: Table) -> str | None:
        row = self._db.execute(
            "SELECT pg_get_serial_sequence(%s, attname) FROM pg_attribute "
            "WHERE attrelid = to_regclass(%s) AND attidentity <> ''",
            (f'"{table.name}"', f'"{table.name}"'),
        ).fetchone()
        return None if row is None else row[0]

    def _put_sequence(self, table: Table, mark: int) -> None:
        sequence = self._find_sequence(table)
        if sequence is not None:
            highest = self._ask("SELECT coalesce(max(seq), 0) FROM {table} WHERE {mine}", table)[0]
            last = max(mark, highest)
            self._db.execute("SELECT setval(%s::regclass, greatest(%s, 1), %s > 0)", (sequence, last, last))

    def _mine(self) -> sql.Composable:
        if self._workspace is None:
            return sql.SQL("true")
        return sql.SQL("{} = {}").format(sql.Identifier(_WORKSPACE), sql.Literal(self._workspace))

    def _compose(self, statement: str, table: Table) -> sql.Composed:
        return sql.SQL(statement).format(
            table=sql.Identifier(table.name),
            columns=sql.SQL(", ").join(map(sql.Identifier, table.columns)),
            mine=self._mine(),
        )

    def _do(self, statement: str, table: Table) -> None:
        self._db.execute(self._compose(statement, table))

    def _ask(self, statement: str, table: Table) -> Row:
        row = self._db.execute(self._compose(statement, table)).fetchone()
        assert row is not None
        return row
