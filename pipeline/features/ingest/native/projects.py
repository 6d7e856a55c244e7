"""The projects that are known on this machine, and the project that a tool's shortened name means."""

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from config.operating_system import read_regular
from config.places import Places, find_folders
from pipeline.features.workspaces.identify import location_of_remote
from pipeline.kernel.git.git_config import remote_of
from pipeline.kernel.git.repository import UnreadableFile, open_repository, root_of_folder

MAX_CONFIG_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Projects:
    """Known project folders, the current project first if there is one, and the short names of Gemini CLI for them."""

    folders: tuple[Path, ...] = ()
    short_names: Mapping[str, Path] = field(default_factory=dict)

    def find_slug(self, slug: str) -> Path | None:
        """Return the folder whose path gives a slug; tools replace all but letters and digits by hyphens."""
        known = [folder for folder in self.folders if slug_of(folder) == slug][:1]
        found = known or (find_folders(Path("/"), slug[1:], slug_of) if slug.startswith("-") else [])
        return found[0] if len(found) == 1 else None

    def find_hash(self, digest: str) -> Path | None:
        """Return the folder whose path has a SHA-256."""
        return next((p for p in self.folders if hashlib.sha256(os.fsencode(p)).hexdigest() == digest), None)

    def find_name(self, name: str) -> Path | None:
        """Return the folder with a name; None if there is none, or several."""
        named = [folder for folder in self.folders if folder.name == name]
        return named[0] if len(named) == 1 else None

    def find_remote(self, name: str) -> Path | None:
        """Return the folder whose Git remote is an address or `owner/repository`, else the one with its last part."""
        wanted = name.removesuffix(".git").lower()
        for folder in self.folders:
            remote = _remote_key(folder)
            if remote and (remote.endswith(f"/{wanted}") or wanted.endswith(remote)):
                return folder
        return self.find_name(re.split(r"[/:]", name.removesuffix(".git"))[-1])

    def find_folder(self, text: str) -> Path | None:
        """Return the folder at an absolute path, if it exists and is more than the root or a user's home."""
        path = Path(text)
        return path if path.is_absolute() and is_project(path, None) else None


def _remote_key(folder: Path) -> str:
    """Return the location of a repository's remote, such as `github.com/owner/shop`; empty if there is none."""
    try:
        root = root_of_folder(folder)
        remote = None if root is None else remote_of(open_repository(root))
    except UnreadableFile:
        return ""
    location = None if remote is None else location_of_remote(remote.url, folder)
    return "" if location is None else location.key.lower()


def slug_of(folder: Path | str) -> str:
    """Return the name under which agents keep the files of a project."""
    return re.sub(r"[^A-Za-z0-9]", "-", str(folder))


def is_project(folder: Path, home: Path | None) -> bool:
    """Return whether a folder exists and may be a project."""
    try:
        return folder.is_dir() and folder != home and len(folder.parts) > 1
    except OSError:
        return False


def list_projects(places: Places, here: Path | None) -> Projects:
    """List the current project, and the projects in the settings of agents."""
    named = [*([here] if here is not None else []), *map(Path, _list_named(places))]
    folders = dict.fromkeys(folder for folder in named if folder.is_absolute() and is_project(folder, places.home))
    names = read_json(places.home / ".gemini" / "projects.json")
    table = names.get("projects") if isinstance(names, dict) else None
    short = (
        {name: Path(folder) for folder, name in table.items() if isinstance(name, str)}
        if isinstance(table, dict)
        else {}
    )
    return Projects(tuple(folders), {name: folder for name, folder in short.items() if is_project(folder, places.home)})


def _list_named(places: Places) -> Iterator[str]:
    claude = places.folder("CLAUDE_CONFIG_DIR", ".claude")
    for file in (claude / ".claude.json", places.home / ".claude.json"):
        yield from _keys(read_json(file))
    codex = places.folder("CODEX_HOME", ".codex") / "config.toml"
    with suppress(tomllib.TOMLDecodeError, RecursionError):
        yield from _keys(tomllib.loads(_read_text(codex)))
    yield from _keys(read_json(places.home / ".gemini" / "projects.json"))


def _keys(value: Any) -> Iterable[str]:
    table = value.get("projects") if isinstance(value, dict) else None
    return [key for key in table if isinstance(key, str)] if isinstance(table, dict) else []


def read_json(file: Path) -> Any:
    """Return the JSON value of a file of settings, None if there is none."""
    try:
        return json.loads(_read_text(file) or "null")
    except (ValueError, RecursionError):
        return None


def _read_text(file: Path) -> str:
    try:
        return read_regular(file, MAX_CONFIG_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
