"""Write settings, and store workspaces' own: a `config.toml` each, or a table if the store is in PostgreSQL."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from config.operating_system import make_folder, publish
from config.paths import HomePaths
from config.settings import WorkspaceConfig, check_workspace_config, refuse_environment_only, validate
from config.toml_files import BYTE_ORDER_MARK, parse_toml, read_text

# Changes whenever a workspace's settings are written: a time (ns), or their whole text.
ConfigState = int | str


class WorkspaceConfigs(ABC):
    """Read and write the settings of each workspace."""

    @abstractmethod
    def place(self, workspace_id: str) -> str:
        """Return the path or table of a workspace's settings, as shown to users; they need not exist."""

    @abstractmethod
    def state(self, workspace_id: str) -> ConfigState | None:
        """Return a value that changes when a workspace's settings are written, or None if it has none."""

    @abstractmethod
    def load(self, workspace_id: str, state: ConfigState) -> WorkspaceConfig:
        """Return a workspace's settings in a state; raise UnreadableSettings if they are not text."""

    @abstractmethod
    def edit(self, workspace_id: str, change: Callable[[str], str]) -> None:
        """Replace a workspace's settings by the result of a function; if it raises, nothing changes."""

    def read(self, workspace_id: str) -> WorkspaceConfig:
        """Return a workspace's settings; empty if it has none."""
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
        """Return the file's modification time (ns)."""
        try:
            return os.stat(self._paths.workspace(workspace_id).config).st_mtime_ns  # noqa: PTH116 - before every request; Path.stat costs twice as much
        except FileNotFoundError:
            return None

    def load(self, workspace_id: str, state: ConfigState) -> WorkspaceConfig:  # noqa: ARG002 - a file is read as it is now
        """Return the file's content."""
        file = self._paths.workspace(workspace_id).config
        return WorkspaceConfig(read_text(file), str(file))

    def edit(self, workspace_id: str, change: Callable[[str], str]) -> None:
        """Write the file."""
        file = self._paths.workspace(workspace_id).config
        write_config(file, change(read_text(file)))


def write_config(file: Path, text: str) -> None:
    """Replace a settings file atomically."""
    make_folder(file.parent)
    draft = file.with_suffix(".toml.new")
    draft.write_text(text, encoding="utf-8", newline="")
    publish(draft, file)


def save_setting(paths: HomePaths, name: str, value: object) -> None:
    """Set a value in the data directory's config.toml; keep other values, comments and layout."""
    source = str(paths.config)
    text = _edit(read_text(paths.config), source, name, value)
    values = parse_toml(text, source)
    refuse_environment_only(values, paths.config)
    validate(values, dict.fromkeys(values, source))
    write_config(paths.config, text)


def save_workspace_setting(configs: WorkspaceConfigs, workspace_id: str, name: str, value: object | None) -> None:
    """Set a value in a workspace's config.toml, or remove it with None; keep everything else, including comments."""
    source = configs.place(workspace_id)

    def change(text: str) -> str:
        changed = _edit(text, source, name, value)
        check_workspace_config(WorkspaceConfig(changed, source))
        return changed

    configs.edit(workspace_id, change)


def _edit(text: str, source: str, name: str, value: object | None) -> str:
    """Return the text of a settings file with a changed top-level key, or without the key."""
    # Imported here because every command reads settings and few write them.
    import tomlkit

    parse_toml(text, source)
    mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
    document = tomlkit.parse(text.removeprefix(mark))
    if value is not None:
        document[name] = value
    elif name in document:
        del document[name]
    return mark + tomlkit.dumps(document)
