"""Where the programs of a user keep their files on this machine."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

# A name matches few folders; a larger search would mean a tree of names that consist of hyphens.
MAX_FOLDERS = 5000


@dataclass(frozen=True, slots=True)
class Places:
    """Where agents keep their files: the user's home, the environment variables, and the platform (`sys.platform`)."""

    home: Path
    environment: Mapping[str, str]
    platform: str

    def folder(self, variable: str, *default: str) -> Path:
        """Return the folder that an environment variable names, else a folder below the user's home."""
        value = self.environment.get(variable, "").strip()
        if not value:
            return self.home.joinpath(*default)
        return self.expand(value)

    @property
    def xdg_config(self) -> Path:
        """Return the folder of settings by the XDG specification, which ignores a relative path."""
        folder = self.folder("XDG_CONFIG_HOME", ".config")
        return folder if folder.is_absolute() else self.home / ".config"

    def expand(self, text: str) -> Path:
        """Return the path that a text names; `~` is the user's home."""
        return self.home / text[1:].lstrip("/\\") if text.startswith("~") else Path(text)

    def shorten(self, path: Path) -> str:
        """Return a path with `~` for the user's home."""
        return f"~/{path.relative_to(self.home).as_posix()}" if path.is_relative_to(self.home) else path.as_posix()


def find_folders(root: Path, name: str, shorten: Callable[[str], str], *, follows_links: bool = False) -> list[Path]:
    """Return the folders below a root whose path gives a name: agents join the shortened parts of a path by hyphens."""
    waiting, found, visited = [(root, name)], list[Path](), 0
    while waiting and visited < MAX_FOLDERS:
        folder, rest = waiting.pop()
        visited += 1
        for part, path in ((shorten(path.name), path) for path in _list_folders(folder, follows_links=follows_links)):
            if part and rest == part:
                found.append(path)
            elif part and rest.startswith(f"{part}-"):
                waiting.append((path, rest[len(part) + 1 :]))
    return found


def _list_folders(folder: Path, *, follows_links: bool) -> list[Path]:
    try:
        with os.scandir(folder) as listing:
            return [folder / entry.name for entry in listing if entry.is_dir(follow_symlinks=follows_links)]
    except OSError:
        return []
