"""Every row of a store, and a row in each of its tables."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from pipeline.kernel.store import driver
from pipeline.kernel.store.copying import SqliteTables

# What engines and the ways between them have each got wrong in their time.
TEXTS = (
    "",
    "plain",
    "\\N",
    "\\.",
    "a\tb\nc\r\nd",
    'it\'s "quoted" \\ %s ? :x {}',
    "日本語 🦓 e\u0301",
    "NULL",
    "\x01\x7f",
)
NUMBERS = (0, 1, -1, 2**62, -(2**62))
FRACTIONS = (0.1, -0.0, 1e-300, 1.7976931348623157e308, 5e-324, 1764000000.123456, 3.0)


def read_all(file: Path) -> dict[str, list[Any]]:
    """Return every row of a store's tables, in any order, and the highest numbers that they gave out."""
    with closing(driver.connect(file)) as db:
        tables = SqliteTables(db).tables
        found = {one.name: sorted(db.execute(f'SELECT * FROM "{one.name}"').fetchall(), key=repr) for one in tables}
        if any(one.once for one in tables):
            found["sqlite_sequence"] = sorted(db.execute("SELECT name, seq FROM sqlite_sequence WHERE seq > 0"))
        return found


def fill_all(file: Path, rows: int = 12) -> None:
    """Put rows of every sort of value into every table of a store, whatever they mean; the last is gone again."""
    with closing(driver.connect(file)) as db:
        for table in SqliteTables(db).tables:
            if table.name != "touched":
                _fill(db, table.name, rows)
        db.execute("DELETE FROM touched" if "touched" in {one.name for one in SqliteTables(db).tables} else "SELECT 1")


def _fill(db: sqlite3.Connection, table: str, rows: int) -> None:
    columns = db.execute('SELECT name, type, "notnull", pk FROM pragma_table_info(?)', (table,)).fetchall()
    places = ", ".join("?" * len(columns))
    for number in range(rows):
        row = [_make_value(number, place, *column) for place, column in enumerate(columns)]
        db.execute(f'INSERT OR IGNORE INTO "{table}" VALUES ({places})', row)
    if columns[0][0] == "seq":
        db.execute(f'DELETE FROM "{table}" WHERE seq = (SELECT max(seq) FROM "{table}")')


def _make_value(number: int, place: int, name: str, kind: str, is_needed: int, pk: int) -> Any:
    if not (is_needed or pk) and (number + place) % 4 == 0:
        return None
    if kind == "TEXT":
        # JSON is read by indexes; keys differ.
        if name in ("details", "fields"):
            return "{}"
        return f"{TEXTS[(number + place) % len(TEXTS)]}{number or ''}"
    if kind == "INTEGER":
        return 1000 + number if pk or name == "seq" else NUMBERS[(number + place) % len(NUMBERS)]
    return FRACTIONS[(number + place) % len(FRACTIONS)]
