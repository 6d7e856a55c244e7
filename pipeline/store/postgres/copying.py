"""Copy the PostgreSQL tables of a workspace, or those of a data directory outside of workspaces."""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

import psycopg
from psycopg import sql

from pipeline.errors import Conflict
from pipeline.store.copying import Row, Table, WritableTables

# The workspace of a row; some tables of the data directory have a column of this name with another meaning.
_WORKSPACE: Final = "workspace"
_TYPES: Final = {"INTEGER": "int8", "REAL": "float8", "TEXT": "text"}


class PostgresTables(WritableTables):
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
            columns=sql.SQL(", ").join(map(_read, table.columns, table.types)),
            table=sql.Identifier(table.name),
            mine=self._mine(),
            key=sql.SQL(", ").join(_identify(table.columns[position] for position in table.key)),
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
            columns=sql.SQL(", ").join(_identify(table.columns)),
            mine=self._mine(),
        )

    def _do(self, statement: str, table: Table) -> None:
        self._db.execute(self._compose(statement, table))

    def _ask(self, statement: str, table: Table) -> Row:
        row = self._db.execute(self._compose(statement, table)).fetchone()
        assert row is not None
        return row


def _identify(names: Iterable[str]) -> Iterator[sql.Identifier]:
    return map(sql.Identifier, names)


def _read(name: str, kind: str) -> sql.Composable:
    # SQLite has no negative zero.
    return sql.SQL("{0} + 0 AS {0}" if kind == "REAL" else "{}").format(sql.Identifier(name))
