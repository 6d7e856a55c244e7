"""Single values: of a data directory on a server, which all machines share, and of a workspace.

Without a server, each value of a data directory is a file. The settings of workspaces are such values.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from config.paths import is_workspace_id
from config.settings import WorkspaceConfig
from config.workspace_configs import ConfigState, WorkspaceConfigs
from pipeline.kernel.store.database import Tables
from pipeline.kernel.store.rows import find_row


@dataclass(frozen=True, slots=True)
class HomeValues:
    """Read and write the values of a table by name; without a server, a data directory has a file for each instead."""

    tables: Tables
    table: str = "home_value"
    column: str = "name"

    def get(self, name: str) -> str | None:
        """Return a value, None if it was never set."""
        return self.tables.find_row(str, f"SELECT value FROM {self.table} WHERE {self.column} = ?", (name,))  # noqa: S608

    def begin(self, name: str, value: str) -> str:
        """Set a value that was never set, and return the stored value: concurrent callers get the same one."""
        self.tables.run(f"INSERT INTO {self.table} VALUES (?, ?) ON CONFLICT DO NOTHING", (name, value))  # noqa: S608
        stored = self.get(name)
        assert stored is not None
        return stored

    def put(self, name: str, value: str) -> None:
        """Set a value."""
        self.tables.run(
            f"INSERT INTO {self.table} VALUES (?, ?) ON CONFLICT ({self.column}) DO UPDATE SET value = excluded.value",  # noqa: S608
            (name, value),
        )

    def replace(self, name: str, before: str | None, value: str) -> bool:
        """Replace a value, or set one that was never set; return False if it is no longer the expected one."""
        if before is None:
            return self.begin(name, value) == value
        changed = f"UPDATE {self.table} SET value = ? WHERE {self.column} = ? AND value = ?"  # noqa: S608
        return self.tables.run(changed, (value, name, before)) == 1

    def take(self, name: str) -> str | None:
        """Return a value and delete it: of concurrent callers, one gets it."""
        with self.tables.write() as db:
            return find_row(db, str, f"DELETE FROM {self.table} WHERE {self.column} = ? RETURNING value", (name,))  # noqa: S608

    def list(self, prefix: str) -> dict[str, str]:
        """Return the values with a prefix, by the rest of their names."""
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        found = f"SELECT {self.column}, value FROM {self.table} WHERE {self.column} >= ? AND {self.column} < ?"  # noqa: S608
        with self.tables.read() as db:
            return {name.removeprefix(prefix): value for name, value in db.execute(found, (prefix, end)).fetchall()}

    def drop(self, name: str) -> None:
        """Delete a value."""
        self.tables.run(f"DELETE FROM {self.table} WHERE {self.column} = ?", (name,))  # noqa: S608


def workspace_values(database: Tables) -> HomeValues:
    """Return the values of a workspace."""
    return HomeValues(database, "meta", "key")


# Prefix of the value's name; the workspace follows.
CONFIG = "config."
# A recall asks several times, and each would be a round trip. A longer cache would let another machine store text
# from a workspace after it became incognito.
KEPT_S = 0.25
MOST_KEPT = 1024


class ConfigValues(WorkspaceConfigs):
    """The text of each workspace's `config.toml` as a value of the data directory."""

    def __init__(self, values: HomeValues, store_place: str, now: Callable[[], float] = time.monotonic) -> None:
        self._values = values
        self._store_place = store_place
        self._now = now
        # The last text and the time of the query; never returned without a time check, since it may have changed.
        self._kept: dict[str, tuple[float, str | None]] = {}

    def place(self, workspace_id: str) -> str:
        """Return the workspace and its server, for messages."""
        return f"config.toml of {workspace_id} at {self._store_place}"

    def state(self, workspace_id: str) -> ConfigState | None:
        """Return the text, at most a quarter of a second old; raise StoreUnavailable without the server."""
        now = self._now()
        cached = self._kept.get(workspace_id)
        if cached is not None and now - cached[0] < KEPT_S:
            return cached[1]
        text = self._values.get(_name(workspace_id))
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        self._kept[workspace_id] = now, text
        return text

    def load(self, workspace_id: str, state: ConfigState) -> WorkspaceConfig:
        """Return the text."""
        return WorkspaceConfig(str(state), self.place(workspace_id))

    def edit(self, workspace_id: str, change: Callable[[str], str]) -> None:
        """Replace the text; compute it again if another machine changed it first."""
        name = _name(workspace_id)
        while not self._values.replace(name, before := self._values.get(name), change(before or "")):
            continue
        self._kept.pop(workspace_id, None)


def _name(workspace_id: str) -> str:
    if not is_workspace_id(workspace_id):
        raise ValueError("not a workspace id")
    return CONFIG + workspace_id
