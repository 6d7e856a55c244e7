"""Sessions that are incognito: nothing that is said in them is stored."""

from dataclasses import dataclass
from sqlite3 import Connection


@dataclass(frozen=True, slots=True)
class IncognitoSession:
    """A session and since when it is incognito, None when it is not."""

    session_id: str
    since: str | None

    @property
    def place(self) -> str:
        """Return where the session stands in the list."""
        return f"{self.since}{self.session_id}"


def begin(db: Connection, session_id: str, at: str) -> None:
    """Begin to store nothing of a session."""
    db.execute("INSERT OR IGNORE INTO incognito VALUES (?, ?)", (session_id, at))


def end(db: Connection, session_id: str) -> None:
    """Store again what a session says."""
    db.execute("DELETE FROM incognito WHERE session_id = ?", (session_id,))


def since(db: Connection, session_id: str) -> str | None:
    """Return since when a session is incognito, None when it is not."""
    row = db.execute("SELECT since FROM incognito WHERE session_id = ?", (session_id,)).fetchone()
    return None if row is None else str(row[0])


def page(db: Connection, limit: int = -1, below: str | None = None) -> list[IncognitoSession]:
    """List the sessions that are incognito, the latest first, from below a place on; -1 lists all."""
    # Times are all as long, so that this is the order of time.
    place = "(since || session_id)"
    rows = db.execute(
        f"SELECT session_id, since FROM incognito WHERE ? IS NULL OR {place} < ? ORDER BY {place} DESC LIMIT ?",  # noqa: S608 - constant text
        (below, below, limit),
    )
    return [IncognitoSession(*row) for row in rows]
