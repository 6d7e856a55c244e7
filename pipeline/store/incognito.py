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


def page(db: Connection, limit: int = -1, below: str | None = None) -> list[tuple[str, str]]:
    """List (session, since) of what is off the record, the latest first, from below a place on; -1 lists all."""
    return db.execute(
        f"SELECT session_id, since FROM incognito WHERE ? IS NULL OR {_PLACE} < ? ORDER BY {_PLACE} DESC LIMIT ?",  # noqa: S608 - constant text
        (below, below, limit),
    ).fetchall()


def place(session_id: str, since: str) -> str:
    """Return where a session stands in the list."""
    return f"{since}{session_id}"


# Times are all as long, so that this is the order of time.
_PLACE = "(since || session_id)"
