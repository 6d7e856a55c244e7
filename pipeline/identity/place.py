"""One name for one project, however its remote is written."""

import posixpath
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

DEFAULT_PORTS = {"ssh": "22", "git+ssh": "22", "ssh+git": "22", "git": "9418", "http": "80", "https": "443"}
# These hosts take O/R and o/r for one repository; of others nothing is known.
CASELESS_HOSTS = frozenset({"github.com", "gitlab.com", "bitbucket.org", "codeberg.org"})

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_SCP = re.compile(r"(\[[^\]/]*\]|[^:/\[]+):(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ProjectPlace:
    """Where a project stands: a key that is the same however it is reached, and a name to call it by."""

    key: str
    name: str


def place_of_path(path: Path) -> ProjectPlace:
    """Return the place of a repository's folder; `x`, `x/.git` and `x.git` are one."""
    project = path.parent if path.name == ".git" else path
    if project.name.endswith(".git"):
        project = project.with_name(project.name.removesuffix(".git") or project.name)
    # The usual name for a bare repository whose worktrees stand beside it.
    named = project.parent if project.name == ".bare" else project
    return ProjectPlace(str(project), named.name)


def place_of_remote(url: str, base: Path) -> ProjectPlace | None:
    """Return the place that a remote's address names, a relative path from `base`; None when it names none.

    User names, passwords and query strings are left out: they may be secrets.
    """
    parts = _URL.fullmatch(url)
    if parts is not None:
        scheme, rest = parts[1].lower(), parts[2]
        return _local(unquote(rest.removeprefix("localhost")), base) if scheme == "file" else _url(scheme, rest)
    if "::" in url.partition("/")[0].partition("[")[0]:
        # A remote helper's address is whatever the helper likes; only a URL in it can be read.
        inner = url.partition("::")[2]
        return place_of_remote(inner, base) if _URL.fullmatch(inner) else None
    if ":" in url.partition("/")[0]:
        return _scp(url)
    return _local(url, base)


def _url(scheme: str, rest: str) -> ProjectPlace | None:
    end = re.search(r"[/?#\\]|$", rest)
    assert end is not None
    authority, path = rest[: end.start()], rest[end.start() :]
    if ":" in authority and "@" in path:
        # Perhaps a password with a slash that nobody escaped: no part of it may be taken for a host or a path.
        return None
    if scheme in ("http", "https"):
        path = re.split(r"[?#]", path, maxsplit=1)[0]
    host = _host(authority.rpartition("@")[2], DEFAULT_PORTS.get(scheme, ""))
    return _place(host, unquote(path, errors="surrogateescape"))


def _scp(url: str) -> ProjectPlace | None:
    """Read `user@host:path`."""
    user, at, rest = url.partition("@")
    if not at or url.startswith("["):
        user, rest = "", url
    parts = _SCP.fullmatch(rest)
    # ssh takes no password here; who writes one all the same shall not see it again.
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
    kept = re.fullmatch(r"[0-9]{1,5}", port) is not None and port != default_port
    return f"{host}:{port}" if host and kept else host


def _place(host: str, path: str) -> ProjectPlace | None:
    if not host:
        return None
    inner = posixpath.normpath("/" + path.lstrip("/")).strip("/").removesuffix(".git").rstrip("/")
    if host in CASELESS_HOSTS:
        inner = inner.lower()
    return ProjectPlace(f"{host}/{inner}", posixpath.basename(inner) or host)


def _local(path: str, base: Path) -> ProjectPlace | None:
    if not path or re.search(r":.*@", path, re.DOTALL):
        # Something like //user:password@host is no path of this machine.
        return None
    try:
        return place_of_path((base / path).resolve())
    except (OSError, RuntimeError, ValueError):
        return None
