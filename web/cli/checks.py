"""What the doctor looks at: the installation, the settings, the home, and what runs on it."""

import importlib.util
import os
import shutil
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from config.settings import Settings
from pipeline.errors import ReverieError, ServerUnreachable
from web.client import Client, server_url

PYTHON = (3, 11)
# One of each kind of thing that an installation may lack; they are found without being imported.
MODULES = ("config", "pipeline", "web", "workers", "click", "flask", "huey", "lancedb", "onnxruntime", "spacy", "torch")
PROCESSES = ("web", "worker", "scheduler")
LOOPBACK = ("127.0.0.1", "::1", "localhost")
CLOSED_FOLDER = 0o700
CLOSED_FILE = 0o600
OTHERS = 0o077
LITTLE_ROOM = 1024**3
NO_ROOM = 100 * 1024**2
HEALTH_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found, and what helps; `mend` does it and says what was done."""

    check: str
    state: Literal["ok", "warn", "fail"]
    says: str
    hint: str | None = None
    mend: Callable[[], str] | None = None


class Patient:
    """An installation and its home; what is found out about the server is found out once."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.paths = settings.paths

    @cached_property
    def health(self) -> dict[str, Any] | ReverieError:
        """Return what the server says of itself, or why it does not."""
        try:
            # Health needs no token, which may itself be what is wrong.
            with Client(server_url(self.settings), timeout_s=HEALTH_TIMEOUT_S) as client:
                return client.health()
        except ReverieError as error:
            return error

    @property
    def is_up(self) -> bool:
        """Tell whether a Reverie answers at the settings' address."""
        return isinstance(self.health, dict)

    def client(self) -> Client:
        """Return a client that does not wait long."""
        return Client.from_settings(self.settings, timeout_s=HEALTH_TIMEOUT_S)


def installation() -> Iterator[Finding]:
    """Look whether this Python has what Reverie needs."""
    from config.version import VERSION

    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < PYTHON:
        needed = ".".join(map(str, PYTHON))
        yield Finding("python", "fail", f"{version} is too old", f"install Reverie with Python {needed} or newer")
    else:
        yield Finding("python", "ok", f"{version}, {sys.executable}")
    missing = [name for name in MODULES if importlib.util.find_spec(name) is None]
    if missing:
        yield Finding("packages", "fail", f"not importable: {', '.join(missing)}", "install Reverie anew")
    else:
        yield Finding("packages", "ok", f"reverie {VERSION}")


def home(patient: Patient) -> Iterator[Finding]:
    """Look whether the home is there, is ours, and has room."""
    root = patient.paths.root
    if not root.exists():
        yield Finding("home", "warn", f"{root} is not there yet", "`reverie up` makes it", _ensured(patient))
        return
    if not root.is_dir() or not os.access(root, os.R_OK | os.W_OK | os.X_OK):
        yield Finding("home", "fail", f"{root} is no folder that can be written to", "REVERIE_HOME names another one")
        return
    yield Finding("home", "ok", str(root))
    free = shutil.disk_usage(root).free
    told = f"{free / 1024**3:.1f} GiB free"
    hint = "make room: a full disk turns writes away"
    yield (
        Finding("disk", "ok", told)
        if free >= LITTLE_ROOM
        else Finding("disk", "warn" if free >= NO_ROOM else "fail", told, hint)
    )


def _ensured(patient: Patient) -> Callable[[], str]:
    def mend() -> str:
        patient.paths.ensure()
        return f"made {patient.paths.root}"

    return mend


def permissions(patient: Patient) -> Iterator[Finding]:
    """Look whether other users of this machine can read what is stored."""
    if os.name != "posix" or not patient.paths.root.is_dir():
        return
    wrong = open_places(patient)
    if not wrong:
        yield Finding("permissions", "ok", "nobody else can enter")
        return
    grave = any(place in (patient.paths.root, patient.paths.token_file) for place in wrong)
    told = f"others can enter or read {_some(wrong)}"
    hint = f"chmod 700 folders and 600 files: {_some(wrong)}"
    yield Finding("permissions", "fail" if grave else "warn", told, hint, lambda: _closed(wrong))


def open_places(patient: Patient) -> list[Path]:
    """List the folders, and the files that hold a secret, that are not their owner's alone."""
    paths = patient.paths
    places = [paths.root, paths.token_file, paths.models, paths.logs, paths.workspaces]
    for workspace in map(paths.workspace, paths.workspace_ids()):
        places += [workspace.root, workspace.snapshots]
    return [place for place in places if place.exists() and place.stat().st_mode & OTHERS]


def _closed(places: Sequence[Path]) -> str:
    for place in places:
        place.chmod(CLOSED_FOLDER if place.is_dir() else CLOSED_FILE)
    return f"closed {_some(places)}"


def _some(places: Sequence[Path], shown: int = 3) -> str:
    return ", ".join(map(str, places[:shown])) + (f" and {len(places) - shown} more" if len(places) > shown else "")


def server(patient: Patient) -> Iterator[Finding]:
    """Look whether our server answers at its address, or could."""
    from config.version import VERSION

    url, health = server_url(patient.settings), patient.health
    if isinstance(health, dict):
        if health["version"] != VERSION:
            hint = "restart it: `reverie down`, `reverie up`"
            yield Finding("server", "warn", f"{url} runs version {health['version']}, here is {VERSION}", hint)
        else:
            yield Finding("server", "ok", f"{url} answers")
    elif isinstance(health, ServerUnreachable) and _can_listen(patient.settings):
        yield Finding("server", "warn", f"nothing runs at {url}; its port is free", "`reverie up` starts it")
    else:
        told = f"port {patient.settings.port} of {patient.settings.host} cannot be had: another program holds it"
        hint = "`reverie status` shows what is ours; REVERIE_PORT chooses another port"
        yield Finding("server", "fail", told, hint)
    if patient.settings.host not in LOOPBACK:
        hint = "127.0.0.1 is safe; elsewhere only the token stands between your memories and the network"
        yield Finding("host", "warn", f"the server listens on {patient.settings.host}", hint)


def _can_listen(settings: Settings) -> bool:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[
            0
        ]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError:
        return False
    return True


def token(patient: Patient) -> Iterator[Finding]:
    """Look whether there is a token, and whether the server takes it."""
    file = patient.paths.token_file
    if not file.exists():
        state: Literal["warn", "fail"] = "fail" if patient.is_up else "warn"
        yield Finding("token", state, f"{file} is not there", "the next start makes it: `reverie down`, `reverie up`")
        return
    try:
        empty = not file.read_text(encoding="ascii").strip()
        if not empty and patient.is_up:
            with patient.client() as client:
                client.workspaces()
    except (OSError, UnicodeDecodeError) as error:
        yield Finding("token", "fail", f"{file} cannot be read: {error}", "remove it; the next start makes another")
    except ReverieError as error:
        hint = "another home's server may hold the port: `reverie down` on that home, or REVERIE_PORT here"
        yield Finding("token", "fail", f"the server does not take it: {error}", hint)
    else:
        if empty:
            yield Finding("token", "fail", f"{file} is empty", "remove it; the next start makes another")
        else:
            yield Finding("token", "ok", str(file))


def processes(patient: Patient) -> Iterator[Finding]:
    """Look whether the whole stack runs, or nothing of it."""
    from web.cli.processes import running

    found = {process.name for process in running(patient.settings)}
    missing = [name for name in PROCESSES if name not in found]
    if not missing:
        yield Finding("processes", "ok", ", ".join(sorted(found)))
    elif len(missing) == len(PROCESSES) and not patient.is_up:
        yield Finding("processes", "warn", "nothing runs", "`reverie up` starts it")
    else:
        yield Finding("processes", "fail", f"missing: {', '.join(missing)}", "`reverie down`, then `reverie up`")


def hosts(patient: Patient) -> Iterator[Finding]:
    """Look whether the settings of agents' hosts still hold what `reverie setup` has written."""
    from web.hosts import install_state

    records = install_state.read_state(patient.paths.root)
    lost = [file for file in records if not _mentions_us(Path(file))]
    if lost:
        told = f"nothing of Reverie stands any more in {', '.join(lost)}"
        yield Finding("hosts", "warn", told, "`reverie setup` shows what it would write, and asks first")
    else:
        names = sorted({host for record in records.values() for host in record.hosts})
        yield Finding("hosts", "ok", ", ".join(names) or "none was set up; `reverie setup` does")


def _mentions_us(file: Path) -> bool:
    try:
        return "reverie" in file.read_text(encoding="utf-8", errors="replace").lower()
    except OSError:
        return False


def model(patient: Patient) -> Iterator[Finding]:
    """Look whether the encoder is compiled, and loaded where a server runs."""
    from pipeline.index.encoder import is_compiled

    name = patient.settings.embedding_model
    if not is_compiled(name, patient.paths.models):
        told, hint = f"{name} is not compiled", "`reverie model compile`; otherwise a worker does when it needs it"
        yield Finding("model", "warn", told, hint, lambda: _compiled(patient))
    elif isinstance(patient.health, dict) and patient.health["encoder"] != "ready":
        yield Finding("model", "warn", f"{name} is still loading", "until then, recall goes by words only")
    else:
        yield Finding("model", "ok", name)


def _compiled(patient: Patient) -> str:
    from pipeline.index.compile import compile_encoder

    patient.paths.ensure()
    return f"compiled in {compile_encoder(patient.settings.embedding_model, patient.paths.models)}"
