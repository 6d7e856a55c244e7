"""Single values of a data directory on a server, which all machines share."""

from pipeline.store.database import HomeTables

GET = "SELECT value FROM home_value WHERE name = ?"
PUT = "INSERT INTO home_value VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"


class HomeValues:
    """Read and write the values; without a server, each value is a file instead."""

    def __init__(self, tables: HomeTables) -> None:
        self._tables = tables

    def get(self, name: str) -> str | None:
        """Return a value, None if it was never set."""
        with self._tables.read() as db:
            row = db.execute(GET, (name,)).fetchone()
            return None if row is None else str(row[0])

    def begin(self, name: str, value: str) -> str:
        """Set a value that was never set, and return the stored value: concurrent callers get the same one."""
        with self._tables.write() as db:
            db.execute("INSERT INTO home_value VALUES (?, ?) ON CONFLICT DO NOTHING", (name, value))
        stored = self.get(name)
        assert stored is not None
        return stored

    def put(self, name: str, value: str) -> None:
        """Set a value."""
        with self._tables.write() as db:
            db.execute(PUT, (name, value))

    def replace(self, name: str, before: str, value: str) -> bool:
        """Replace a value; return False if it is no longer the expected one."""
        with self._tables.write() as db:
            changed = db.execute(
                "UPDATE home_value SET value = ? WHERE name = ? AND value = ?", (value, name, before)
            ).rowcount
            return changed == 1

    def take(self, name: str) -> str | None:
        """Return a value and delete it: of concurrent callers, one gets it."""
        with self._tables.write() as db:
            row = db.execute("DELETE FROM home_value WHERE name = ? RETURNING value", (name,)).fetchone()
            return None if row is None else str(row[0])

    def list(self, prefix: str) -> dict[str, str]:
        """Return the values with a prefix, by the rest of their names."""
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        with self._tables.read() as db:
            rows = db.execute("SELECT name, value FROM home_value WHERE name >= ? AND name < ?", (prefix, end))
            return {str(name).removeprefix(prefix): str(value) for name, value in rows.fetchall()}

    def close(self) -> None:
        """Close the connections."""
        self._tables.close()

    def drop(self, name: str) -> None:
        """Delete a value."""
        with self._tables.write() as db:
            db.execute("DELETE FROM home_value WHERE name = ?", (name,))
