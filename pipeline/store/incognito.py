"""Sessions that are off the record: nothing that is said in them is stored."""

from sqlite3 import Connection


def begin(db: Connection, session_id: str, at: str) -> None:
    """Take a session off the record."""
    db.execute("INSERT OR IGNORE INTO incognito VALUES (?, ?)", (session_id, at))


def end(db: Connection, session_id: str) -> None:
    """Put a session on the record again."""
    db.execute("DELETE FROM incognito WHERE session_id = ?", (session_id,))


def since(db: Connection, session_id: str) -> str | None:
    """Return since when a session is off the record, None when it is not."""
    row = db.execute("SELECT since FROM incognito WHERE session_id = ?", (session_id,)).fetchone()
    return None if row is None else str(row[0])


def page(db: Connection) -> list[tuple[str, str]]:
    """List (session, since) of what is off the record."""
    return db.execute("SELECT session_id, since FROM incognito ORDER BY since DESC").fetchall()
