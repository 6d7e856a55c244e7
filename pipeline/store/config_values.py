"""Workspaces' settings in the PostgreSQL database, which several machines share."""

import time
from collections.abc import Callable

from config.paths import is_workspace_id
from config.settings import WorkspaceConfig
from config.workspace_configs import ConfigState, WorkspaceConfigs
from pipeline.store.home_values import HomeValues

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
        while not self._put(name, before := self._values.get(name), change(before or "")):
            continue
        self._kept.pop(workspace_id, None)

    def _put(self, name: str, before: str | None, text: str) -> bool:
        if before is None:
            return self._values.begin(name, text) == text
        return self._values.replace(name, before, text)


def _name(workspace_id: str) -> str:
    if not is_workspace_id(workspace_id):
        raise ValueError("not a workspace id")
    return CONFIG + workspace_id
