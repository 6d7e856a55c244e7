"""Where workspaces keep settings of their own: in a `config.toml` each, or wherever their home's store is."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from config.paths import HomePaths
from config.settings import WorkspaceConfig, read_text

# What is another one whenever a workspace's own settings were written: a time (ns), or all that they say.
ConfigState = int | str


class WorkspaceConfigs(ABC):
    """Know each workspace's own settings."""

    @abstractmethod
    def place(self, workspace_id: str) -> str:
        """Return where a workspace's own settings stand, or would stand, as a person looks for them."""

    @abstractmethod
    def state(self, workspace_id: str) -> ConfigState | None:
        """Return what changes when a workspace's own settings are written, None where it never had any."""

    @abstractmethod
    def load(self, workspace_id: str, state: ConfigState) -> WorkspaceConfig:
        """Return a workspace's own settings in a state; raise UnreadableSettings where they are no text."""

    @abstractmethod
    def edit(self, workspace_id: str, change: Callable[[str], str]) -> None:
        """Put what a function makes of a workspace's own settings in their place; what it raises changes nothing."""

    def read(self, workspace_id: str) -> WorkspaceConfig:
        """Return a workspace's own settings, which say nothing where it never had any."""
        state = self.state(workspace_id)
        return WorkspaceConfig("", self.place(workspace_id)) if state is None else self.load(workspace_id, state)


class ConfigFiles(WorkspaceConfigs):
    """The `config.toml` in each workspace's folder."""

    def __init__(self, paths: HomePaths) -> None:
        self._paths = paths

    def place(self, workspace_id: str) -> str:
        """Return the file."""
        return str(self._paths.workspace(workspace_id).config)

    def state(self, workspace_id: str) -> ConfigState | None:
        """Return when the file was changed last (ns)."""
        try:
            return os.stat(self._paths.workspace(workspace_id).config).st_mtime_ns  # noqa: PTH116 - before every request; Path.stat costs twice as much
        except FileNotFoundError:
            return None

    def load(self, workspace_id: str, state: ConfigState) -> WorkspaceConfig:  # noqa: ARG002 - a file is read as it is now
        """Return what the file says."""
        file = self._paths.workspace(workspace_id).config
        return WorkspaceConfig(read_text(file), str(file))

    def edit(self, workspace_id: str, change: Callable[[str], str]) -> None:
        """Write the file anew."""
        file = self._paths.workspace(workspace_id).config
        write_config(file, change(read_text(file)))


def write_config(file: Path, text: str) -> None:
    """Put a text in the place of a file of settings, all of it or nothing."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_suffix(".toml.new")
    draft.write_text(text, encoding="utf-8", newline="")
    draft.replace(file)
