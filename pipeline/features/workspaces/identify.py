"""The rules, strongest first: explicit, environment, file (`.reverie.toml`), git remote, git directory, path.

A project has one name for all spellings of its remote. A clone that has memories keeps its workspace.
"""

import hashlib
import os
import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from config.paths import WORKSPACE_ID, is_workspace_id
from pipeline.features.workspaces.clones import (
    Clone,
    CloneChoice,
    ClonePlaces,
    RemoteLocation,
    choose_for_clone,
    find_mark,
)
from pipeline.features.workspaces.project_file import Override, Split, is_of_owner, read_nearest_override
from pipeline.kernel.errors import FieldError, InvalidField
from pipeline.kernel.git.git_config import remote_of
from pipeline.kernel.git.repository import (
    Repository,
    UnreadableFile,
    open_repository,
    printable,
    resolve_upwards,
    root_of_folder,
)

DEFAULT_PORTS = {"ssh": "22", "git+ssh": "22", "ssh+git": "22", "git": "9418", "http": "80", "https": "443"}
# These hosts treat O/R and o/r as one repository; for other hosts that is unknown.
CASELESS_HOSTS = frozenset({"github.com", "gitlab.com", "bitbucket.org", "codeberg.org"})

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_SCP = re.compile(r"(\[[^\]/]*\]|[^:/\[]+):(.*)", re.DOTALL)
SLUG_CHARS = 48

Rule = Literal["explicit", "environment", "file", "git-remote", "git", "path"]


@dataclass(frozen=True, slots=True)
class ProjectLocation:
    """A project's location: a key that is the same for all ways to reach it, and a display name."""

    key: str
    name: str


def location_of_path(path: Path) -> ProjectLocation:
    """Return the location of a repository's folder; `x`, `x/.git` and `x.git` are the same."""
    project = path.parent if path.name == ".git" else path
    if project.name.endswith(".git"):
        project = project.with_name(project.name.removesuffix(".git") or project.name)
    # The usual name of a bare repository with worktrees next to it.
    named = project.parent if project.name == ".bare" else project
    return ProjectLocation(str(project), named.name)


def location_of_remote(url: str, base: Path) -> ProjectLocation | None:
    """Return the location that a remote's address names, relative to `base`; None if it names none.

    User names, passwords and query strings are left out, because they may be secrets.
    """
    parts = _URL.fullmatch(url)
    if parts is not None:
        scheme, rest = parts[1].lower(), parts[2]
        return _local(unquote(rest.removeprefix("localhost")), base) if scheme == "file" else _url(scheme, rest)
    if "::" in url.partition("/")[0].partition("[")[0]:
        # A remote helper's address has any format; only a URL in it can be parsed.
        inner = url.partition("::")[2]
        return location_of_remote(inner, base) if _URL.fullmatch(inner) else None
    if ":" in url.partition("/")[0]:
        return _scp(url)
    return _local(url, base)


def _url(scheme: str, rest: str) -> ProjectLocation | None:
    end = re.search(r"[/?#\\]|$", rest)
    assert end is not None
    authority, path = rest[: end.start()], rest[end.start() :]
    if ":" in authority and "@" in path:
        # Possibly a password with an unescaped slash: no part may be treated as a host or a path.
        return None
    if scheme in ("http", "https"):
        path = re.split(r"[?#]", path, maxsplit=1)[0]
    host = _host(authority.rpartition("@")[2], DEFAULT_PORTS.get(scheme, ""))
    return _place(host, unquote(path, errors="surrogateescape"))


def _scp(url: str) -> ProjectLocation | None:
    """Parse `user@host:path`."""
    user, at, rest = url.partition("@")
    if not at or url.startswith("["):
        user, rest = "", url
    parts = _SCP.fullmatch(rest)
    # ssh takes no password here; if there is one, do not show it.
    if parts is None or ":" in user or re.search("@.*:" if user else "@", parts[2]):
        return None
    authority = parts[1]
    if authority.startswith("["):
        inner = authority[1:-1].rpartition("@")[2]
        authority = inner if inner.count(":") < 2 else f"[{inner}]"
    return _place(_host(authority, DEFAULT_PORTS["ssh"]), parts[2])


def _host(authority: str, default_port: str) -> str:
    if authority.startswith("["):
        host, _, after = authority[1:].partition("]")
        port = after.removeprefix(":")
    else:
        host, _, port = authority.partition(":")
    host = host.lower().rstrip(".")
    has_port = re.fullmatch(r"[0-9]{1,5}", port) is not None and port != default_port
    return f"{host}:{port}" if host and has_port else host


def _place(host: str, path: str) -> ProjectLocation | None:
    if not host:
        return None
    inner = posixpath.normpath("/" + path.lstrip("/")).strip("/").removesuffix(".git").rstrip("/")
    if host in CASELESS_HOSTS:
        inner = inner.lower()
    return ProjectLocation(f"{host}/{inner}", posixpath.basename(inner) or host)


def _local(path: str, base: Path) -> ProjectLocation | None:
    if not path or re.search(r":.*@", path, re.DOTALL):
        # Something like //user:password@host is no path of this machine.
        return None
    try:
        return location_of_path((base / path).resolve())
    except (OSError, RuntimeError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class Identity:
    """A folder's workspace id, the rule that decided, and the reason.

    `problem` names an invalid `.reverie.toml`, `claim` a file that names a workspace: it is used with the rule
    `file`, otherwise it is not approved. `clone` is the choice for a git repository whose location decides.
    """

    id: str
    rule: Rule
    detail: str
    problem: FieldError | None = None
    claim: Override | None = None
    clone: CloneChoice | None = field(default=None, compare=False)

    @property
    def waits(self) -> bool:
        """Return whether a project's file names a workspace without approval."""
        return self.claim is not None and self.rule != "file"


def identify(
    folder: Path,
    *,
    explicit: str | None = None,
    environment: str | None = None,
    split: Split = "none",
    is_agreed: Callable[[Path, str], bool] = lambda _file, _workspace: False,
    clones: Sequence[Clone] = (),
    is_in_use: Callable[[str], bool] = lambda _workspace: False,
) -> Identity:
    """Determine the workspace of a folder: same files, same answer.

    A workspace that a project's file names is used if a person approved it, or if the file is not part of a
    repository. `clones` lists the clones with memories.

    `split` applies unless a `.reverie.toml` says otherwise. Unreadable git files lead to the next rule.
    Raises InvalidField for a path that cannot be resolved, or an invalid explicit id.
    """
    if explicit is not None:
        return Identity(_check_id(explicit, "workspace"), "explicit", "named by the request")
    if environment is not None:
        return Identity(_check_id(environment, "REVERIE_WORKSPACE"), "environment", "REVERIE_WORKSPACE names it")
    own, problem = _read_override(folder)
    derived = _derive(folder, (own.split if own else None) or split, clones, is_in_use)
    if own is not None and own.workspace not in (None, derived.id):
        if is_agreed(own.file, own.workspace) or is_of_owner(own.file, folder):
            return Identity(own.workspace, "file", f"{printable(own.file)} names it", claim=own)
        unanswered = f"{printable(own.file)} claims {own.workspace}, which is not approved"
        return replace(derived, detail=f"{derived.detail}; {unanswered}", claim=own)
    if problem is None:
        return derived
    left_out = f"{derived.detail}; {printable(problem.loc)} is ignored: {problem.msg}"
    return replace(derived, detail=left_out, problem=problem)


def _check_id(name: str, loc: str) -> str:
    if not is_workspace_id(name):
        raise InvalidField(FieldError(loc, f"must match {WORKSPACE_ID.pattern}"))
    return name


def _read_override(folder: Path) -> tuple[Override | None, FieldError | None]:
    try:
        return read_nearest_override(folder), None
    except UnreadableFile as error:
        return None, FieldError(printable(error.file), error.reason)


def _derive(folder: Path, split: Split, clones: Sequence[Clone], is_in_use: Callable[[str], bool]) -> Identity:
    root = root_of_folder(folder)
    if root is None:
        path = resolve_upwards(folder)[0]
        return _by_path(path, f"{printable(path)} is in no git repository")
    try:
        repository = open_repository(root)
    except UnreadableFile as error:
        return _by_path(root, f"{printable(root)} by its path, for {error}")
    if split == "worktree":
        return _identity(location_of_path(root), "git", f"worktree {printable(root)}, split by worktree")
    if split == "clone":
        return _by_directory(repository, "split by clone")
    return _by_clone(repository, clones, is_in_use)


def _by_clone(repository: Repository, clones: Sequence[Clone], is_in_use: Callable[[str], bool]) -> Identity:
    by_location, remote = _by_remote(repository)
    place = location_of_path(repository.common_dir)
    reused = replace(place, key=f"{place.key}\0{find_mark(repository)}")
    places = ClonePlaces(remote, _id_of(place), _id_of(reused))
    choice = choose_for_clone(repository, places, clones, is_in_use)
    if choice.clone.workspace == by_location.id:
        return replace(by_location, clone=choice)
    detail = f"git directory {printable(repository.common_dir)}: {choice.why}"
    return Identity(choice.clone.workspace, "git", detail, clone=choice)


def _by_remote(repository: Repository) -> tuple[Identity, RemoteLocation | None]:
    try:
        remote = remote_of(repository)
    except UnreadableFile as error:
        return _by_directory(repository, f"its remotes are unknown, for {error}"), None
    if remote is None:
        return _by_directory(repository, "it has no remote"), None
    # A linked worktree is elsewhere: a relative address refers to the folder that all worktrees share.
    common = repository.common_dir
    location = location_of_remote(remote.url, common.parent if common.name == ".git" else common)
    if location is None:
        return _by_directory(repository, f"the address of its remote {printable(remote.name)} names no location"), None
    detail = f"remote {printable(remote.name)} of {printable(common)} is {printable(location.key)}"
    identity = _identity(location, "git-remote", detail)
    return identity, RemoteLocation(location.key, identity.id, remote.name == "origin")


def _by_directory(repository: Repository, why: str) -> Identity:
    common = repository.common_dir
    return _identity(location_of_path(common), "git", f"git directory {printable(common)}, {why}")


def _by_path(path: Path, why: str) -> Identity:
    return _identity(ProjectLocation(str(path), path.name), "path", why)


def _identity(location: ProjectLocation, rule: Rule, detail: str) -> Identity:
    return Identity(_id_of(location), rule, detail)


def _id_of(location: ProjectLocation) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", location.name.lower()).strip("-")[:SLUG_CHARS] or "root"
    return f"{slug}-{hashlib.sha256(os.fsencode(location.key)).hexdigest()[:8]}"
