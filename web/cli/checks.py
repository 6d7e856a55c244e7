"""What the doctor checks of the installation, the server and its processes, and the hosts that were set up."""

import importlib.util
import re
import socket
import sys
from collections.abc import Iterator
from functools import cached_property, partial
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from config.paths import HomePaths
from config.settings import Settings
from pipeline.errors import ReverieError, ServerUnreachable, WrongServer
from pipeline.extras import EXTRAS, install_command, list_missing
from pipeline.records import CheckResult
from web.client import Client, TokenRefused
from web.own_server import describe_unproven, remove_unproven

if TYPE_CHECKING:
    from pipeline.services.diagnostics import CheckContext

PYTHON = (3, 11)
# One of each kind of thing that an installation may lack; they are found without being imported.
MODULES = (
    "config",
    "pipeline",
    "web",
    "workers",
    "click",
    "flask",
    "huey",
    "lancedb",
    "onnxruntime",
    "spacy",
    "torch",
)
PROCESSES = ("web", "worker", "scheduler")
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
# What the packages are called that only a torch with CUDA needs.
CUDA_PACKAGES = ("cuda-", "nvidia-", "triton")
HEALTH_TIMEOUT_S = 5.0


class ServerProbe:
    """What the server of a home says of itself, asked once."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @cached_property
    def health(self) -> dict[str, Any] | ReverieError:
        """Return what the server says of itself, or why it does not."""
        try:
            with Client.from_settings(self.settings, timeout_s=HEALTH_TIMEOUT_S) as client:
                health = client.health()
                return {name: health[name] for name in ("version", "encoder")}
        except ReverieError as error:
            return error

    @property
    def is_up(self) -> bool:
        """Tell whether a Reverie answers at the settings' address."""
        return isinstance(self.health, dict)

    def context(self) -> "CheckContext":
        """Return what the checks of home and workspaces go by."""
        from pipeline.services.diagnostics import CheckContext

        encoder = self.health["encoder"] if isinstance(self.health, dict) else None
        return CheckContext(self.settings, self.is_up, encoder, partial(_run_job, self.settings))


def check_installation() -> Iterator[CheckResult]:
    """Look whether this Python has what Reverie needs."""
    from web.version import VERSION

    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < PYTHON:
        needed = ".".join(map(str, PYTHON))
        yield CheckResult("python", "fail", f"{version} is too old", f"install Reverie with Python {needed} or newer")
    else:
        yield CheckResult("python", "ok", f"{version}, {sys.executable}")
    missing = [name for name in MODULES if importlib.util.find_spec(name) is None]
    if missing:
        yield CheckResult("packages", "fail", f"not importable: {', '.join(missing)}", "install Reverie anew")
    else:
        yield CheckResult("packages", "ok", f"reverie {VERSION}")


def check_extras() -> Iterator[CheckResult]:
    """Report which optional features are not installed."""
    missing = [name for name in EXTRAS if list_missing(name)]
    says = f"not installed: {', '.join(missing)}" if missing else "all optional features are installed"
    if missing:
        says += f"; `{install_command(*missing)}` installs them"
    yield CheckResult("extras", "ok", says)


def check_torch() -> Iterator[CheckResult]:
    """Look whether the installed torch is the build for the CPU, without importing it."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        # That it is missing is said of the packages.
        return
    said = (Path(spec.origin).parent / "version.py").read_text(encoding="utf-8")
    cuda = re.search(r"^cuda\b.*= *'([^']+)'", said, re.MULTILINE)
    version = re.search(r"^__version__ = '([^'+]+)", said, re.MULTILINE)
    if cuda is None or version is None:
        yield CheckResult("torch", "ok", "a build for the CPU")
        return
    sizes = {one.name: sum(file.size or 0 for file in one.files or ()) for one in distributions() if _is_cuda(one.name)}
    spare = sorted(name for name in sizes if name != "torch")
    says = f"a build for CUDA {cuda[1]}: {sum(sizes.values()) / 1e9:.1f} GB with what it needs, and nothing uses a GPU"
    pip = f"{sys.executable} -m pip"
    hint = f"`{pip} install --index-url {CPU_INDEX} torch=={version[1]}+cpu` takes the build for the CPU (0.8 GB)"
    if spare:
        hint += f", `{pip} uninstall -y {' '.join(spare)}` the rest"
    yield CheckResult("torch", "warn", says, hint)


def _is_cuda(name: str) -> bool:
    return name == "torch" or name.startswith(CUDA_PACKAGES)


def check_server(server: ServerProbe) -> Iterator[CheckResult]:
    """Look whether our server answers at its address, or could."""
    from web.version import VERSION

    url, health = server.settings.url, server.health
    if isinstance(health, dict):
        if health["version"] != VERSION:
            hint = "restart it: `reverie down`, `reverie up`"
            yield CheckResult("server", "warn", f"{url} runs version {health['version']}, here is {VERSION}", hint)
        else:
            yield CheckResult("server", "ok", f"{url} answers")
    elif isinstance(health, ServerUnreachable) and _can_listen(server.settings):
        yield CheckResult("server", "warn", f"nothing runs at {url}; its port is free", "`reverie up` starts it")
    elif isinstance(health, WrongServer):
        yield CheckResult("server", "fail", health.problem, health.remedy)
    else:
        hint = "`reverie status` shows the processes of this data directory; REVERIE_PORT chooses another port"
        yield CheckResult("server", "fail", f"{url} does not answer as it should: {health}", hint)
    yield from _check_hooks(server.settings.paths)
    if server.settings.is_exposed:
        yield _check_exposure(server.settings)


def _check_hooks(paths: HomePaths) -> Iterator[CheckResult]:
    """Report a program that hooks found at the server's address, and to which they sent nothing."""
    noted = describe_unproven(paths)
    if noted is None:
        return
    hint = "hooks try again by themselves; `reverie doctor --fix` removes this note"
    yield CheckResult("hooks", "warn", noted, hint, partial(_remove_note, paths))


def _remove_note(paths: HomePaths) -> str:
    remove_unproven(paths)
    return "removed the note"


def _check_exposure(settings: Settings) -> CheckResult:
    """Tell whether a server that others can reach would start, and by which name they do."""
    from pipeline.services.people import opened_people
    from web.listener import ListenerRefused, check_listener

    try:
        with opened_people(settings) as people:
            check_listener(settings, people)
    except ListenerRefused as error:
        return CheckResult("host", "warn", f"the server does not start for others than this machine: {error}")
    if not settings.public_url:
        hint = "`public_url` says it; requests that name another are refused"
        return CheckResult("host", "warn", "nobody knows by which name people reach the server", hint)
    return CheckResult(
        "host", "ok", f"people reach the server at {settings.public_url}, through {settings.behind_proxy}"
    )


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


def check_token(server: ServerProbe) -> Iterator[CheckResult]:
    """Look whether there is a token, and whether the server takes it."""
    file = server.settings.paths.token_file
    if not file.exists():
        state: Literal["warn", "fail"] = "fail" if server.is_up else "warn"
        yield CheckResult(
            "token", state, f"{file} is not there", "the next start makes it: `reverie down`, `reverie up`"
        )
        return
    try:
        empty = not file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        yield CheckResult("token", "fail", f"{file} cannot be read: {error}", "remove it; the next start makes another")
        return
    refusal = _find_refusal(server.settings) if server.is_up and not empty else None
    if empty:
        yield CheckResult("token", "fail", f"{file} is empty", "remove it; the next start makes another")
    elif refusal is not None:
        hint = "another home's server may hold the port: `reverie down` on that home, or REVERIE_PORT here"
        yield CheckResult("token", "fail", str(refusal), hint)
    else:
        yield CheckResult("token", "ok", str(file))


def _find_refusal(settings: Settings) -> TokenRefused | None:
    """Ask the server anything, and return how it refused the token, if it did."""
    try:
        with Client.from_settings(settings, timeout_s=HEALTH_TIMEOUT_S) as client:
            client.workspaces()
    except TokenRefused as error:
        return error
    except ReverieError:
        # Whatever else is wrong with the home is another check's, and the token was taken.
        return None
    return None


def check_processes(server: ServerProbe) -> Iterator[CheckResult]:
    """Look whether the whole stack runs, or nothing of it."""
    from web.cli.processes import list_running

    found = {process.name for process in list_running(server.settings)}
    missing = [name for name in PROCESSES if name not in found]
    if not missing:
        yield CheckResult("processes", "ok", ", ".join(sorted(found)))
    elif len(missing) == len(PROCESSES) and not server.is_up:
        yield CheckResult("processes", "warn", "nothing runs", "`reverie up` starts it")
    else:
        yield CheckResult("processes", "fail", f"missing: {', '.join(missing)}", "`reverie down`, then `reverie up`")


def check_hosts(context: "CheckContext") -> Iterator[CheckResult]:
    """Look whether the settings of agents' hosts still hold what `reverie setup` has written."""
    from web.hosts import files
    from web.hosts.hooks import FORMER_CLIENT, FORMER_PATH

    records = files.read_state(context.paths.root)
    texts = {file: _read_lowered(Path(file)) for file in records}
    lost = [file for file, text in texts.items() if "reverie" not in text]
    old = [file for file, text in texts.items() if FORMER_CLIENT in text or FORMER_PATH in text]
    if old:
        says = f"hooks of an earlier version stand in {', '.join(old)}"
        yield CheckResult("hosts", "warn", says, "`reverie setup` brings them up to date")
    elif lost:
        says = f"nothing of Reverie stands any more in {', '.join(lost)}"
        yield CheckResult("hosts", "warn", says, "`reverie setup` shows what it would write, and asks first")
    else:
        names = sorted({host for record in records.values() for host in record.hosts})
        yield CheckResult("hosts", "ok", ", ".join(names) or "none was set up; `reverie setup` does")


def check_teams(context: "CheckContext") -> Iterator[CheckResult]:
    """Ask each team's server that the home knows whether it answers and takes the token: hooks say nothing of it."""
    from pipeline.services.team_servers import list_opened, list_teams

    problems: list[ReverieError] = []
    for server in list_teams(context.paths.servers, problems.append):
        try:
            list_opened(server)
            yield CheckResult("teams", "ok", f"{server.name} answers at {server.url} and takes your token")
        except ReverieError as error:
            problems.append(error)
    hint = "`reverie team add` keeps another address or token, `reverie team remove` asks it no more"
    yield from (CheckResult("teams", "warn", str(problem), hint) for problem in problems)


def _read_lowered(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").lower()
    except OSError:
        return ""


def _run_job(settings: Settings, workspace: str, job: str) -> str:
    from pipeline.bootstrap.worker import WorkerContainer
    from pipeline.services.maintenance import run_job

    worker = WorkerContainer(settings)
    try:
        outcome = run_job(worker.context(workspace), job, worker.owner, lambda: False)
    finally:
        worker.close()
    if outcome is None:
        return f"{job} runs now elsewhere"
    if outcome.error:
        return f"{job} failed: {outcome.error}"
    counts = ", ".join(f"{key} {count}" for key, count in outcome.report.counts.items())
    return f"{job} found and repaired: {counts or 'nothing'}"
