"""Checks of `reverie doctor`: the installation, the server, its processes, and the connected agents."""

import importlib.util
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from config.settings import Settings, environment_workspace
from pipeline.kernel.errors import ReverieError, ServerUnreachable, StoreUnavailable
from pipeline.kernel.extras import EXTRAS, install_command, list_missing
from pipeline.kernel.records import CheckResult
from web.cli.state import read_lowered
from web.http.client import Client, TokenRefused

if TYPE_CHECKING:
    from pipeline.features.diagnostics.usecases import CheckContext

PYTHON = (3, 11)
# Packages that an installation may lack; they are looked up without being imported.
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
)
PROCESSES = ("web", "worker", "scheduler")
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
# Prefixes of packages that only torch with CUDA needs.
CUDA_PACKAGES = ("cuda-", "nvidia-", "triton")
HEALTH_TIMEOUT_S = 5.0


class ServerProbe:
    """Query the server once for its health and its workspaces."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def _ask(self, question: Callable[[Client], dict[str, Any]]) -> dict[str, Any] | ReverieError:
        try:
            with Client.from_settings(self.settings, timeout_s=HEALTH_TIMEOUT_S) as client:
                return question(client)
        except ReverieError as error:
            return error

    @cached_property
    def health(self) -> dict[str, Any] | ReverieError:
        """Return version and encoder state of the server, or the error of the request."""
        health = self._ask(lambda client: client.health())
        return (
            {name: health.get(name) for name in ("version", "encoder", "build")} if isinstance(health, dict) else health
        )

    @property
    def is_up(self) -> bool:
        """Tell whether a Reverie server answers at the configured address."""
        return isinstance(self.health, dict)

    @cached_property
    def workspaces(self) -> dict[str, Any] | ReverieError:
        """Return the number of memories by workspace, or the error of the request."""
        return self._ask(lambda client: {item["id"]: item["memories"] for item in client.workspaces()["items"]})

    def context(self) -> "CheckContext":
        """Return the context for the checks of the data directory and workspaces."""
        from pipeline.features.diagnostics.usecases import CheckContext

        encoder = self.health["encoder"] if isinstance(self.health, dict) else None
        return CheckContext(self.settings, self.is_up, encoder, partial(_run_job, self.settings))


def _judge(check: str, ok: str, problem: str | None, hint: str, state: Literal["warn", "fail"] = "fail") -> CheckResult:
    """Return the result of a check that has at most one problem."""
    return CheckResult(check, "ok", ok) if not problem else CheckResult(check, state, problem, hint)


def check_installation() -> Iterator[CheckResult]:
    """Check that this Python has everything that Reverie needs."""
    from web.version import VERSION

    version, needed = (".".join(map(str, numbers)) for numbers in (sys.version_info[:3], PYTHON))
    too_old = f"Python {version} is too old" if sys.version_info < PYTHON else None
    yield _judge("python", f"{version}, {sys.executable}", too_old, f"install Reverie with Python {needed} or newer")
    missing = ", ".join(name for name in MODULES if importlib.util.find_spec(name) is None)
    yield _judge("packages", f"reverie {VERSION}", missing and f"missing: {missing}", "install Reverie again")


def check_extras() -> Iterator[CheckResult]:
    """Report which optional features are not installed."""
    missing = [name for name in EXTRAS if list_missing(name)]
    says = f"not installed: {', '.join(missing)}" if missing else "all optional features are installed"
    if missing:
        says += f"; `{install_command(*missing)}` installs them"
    yield CheckResult("extras", "ok", says)


def check_torch() -> Iterator[CheckResult]:
    """Check that torch is the CPU build, without importing it."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        yield CheckResult("torch", "ok", "not installed; only models other than the default ones need it")
        return
    source = (Path(spec.origin).parent / "version.py").read_text(encoding="utf-8")
    cuda = re.search(r"^cuda\b.*= *'([^']+)'", source, re.MULTILINE)
    version = re.search(r"^__version__ = '([^'+]+)", source, re.MULTILINE)
    if cuda is None or version is None:
        yield CheckResult("torch", "ok", "CPU build")
        return
    sizes = {
        package.name: sum(file.size or 0 for file in package.files or ())
        for package in distributions()
        if package.name == "torch" or package.name.startswith(CUDA_PACKAGES)
    }
    spare = sorted(name for name in sizes if name != "torch")
    size_gb = sum(sizes.values()) / 1e9
    says = f"CUDA {cuda[1]} build: {size_gb:.1f} GB with its dependencies, although Reverie does not use a GPU"
    pip = f"{sys.executable} -m pip"
    hint = f"`{pip} install --index-url {CPU_INDEX} torch=={version[1]}+cpu` installs the CPU build (0.8 GB)"
    if spare:
        hint += f", `{pip} uninstall -y {' '.join(spare)}` removes the rest"
    yield CheckResult("torch", "warn", says, hint)


def check_settings(context: "CheckContext") -> Iterator[CheckResult]:
    """Report where the settings, which are valid, come from."""
    file = context.paths.config
    yield CheckResult(
        "settings", "ok", str(file) if file.exists() else "all at their defaults, or from the environment"
    )


def check_server(server: ServerProbe) -> Iterator[CheckResult]:
    """Check that our server answers at its address, or could start there."""
    url, health = server.settings.url, server.health
    if isinstance(health, dict):
        skew = find_skew(health)
        hint = "restart it: `reverie down`, `reverie up`"
        yield _judge("server", f"{url} answers", skew and f"{url} {skew}", hint, "warn")
    elif isinstance(health, ServerUnreachable):
        hint = "start Reverie with `reverie up`"
        holder = _find_port_holder(server.settings)
        yield (
            CheckResult("server", "warn", f"nothing runs at {url}; the port is free", hint)
            if holder is None
            else CheckResult("server", "fail", holder)
        )
    else:
        hint = "`reverie status` shows the processes of this data directory; to use another port, set REVERIE_PORT"
        yield CheckResult("server", "fail", f"{url} answers with an error: {health}", hint)
    if server.settings.is_exposed:
        yield _check_exposure(server.settings)


def find_skew(health: Mapping[str, Any]) -> str | None:
    """Return how the code of the running server differs from the code of this command, None if it does not."""
    from web.version import BUILD, VERSION, is_same_installation

    if health["version"] != VERSION:
        return f"runs version {health['version']}, but {VERSION} is installed"
    build = health["build"]
    if build == BUILD:
        return None
    is_older = not build or is_same_installation(build, BUILD)
    return "runs the code of an earlier installation" if is_older else "runs another installation of Reverie"


def _check_exposure(settings: Settings) -> CheckResult:
    """Check that a server for other machines would start, and that its public address is set."""
    from pipeline.kernel.store.stores import opened_people
    from web.http.listener import ListenerRefused, check_listener

    try:
        with opened_people(settings) as people:
            check_listener(settings, people)
    except ListenerRefused as error:
        return CheckResult("host", "warn", f"the server does not start for other machines: {error}")
    if not settings.public_url:
        hint = "set `public_url`; the server rejects requests that name another host"
        return CheckResult("host", "warn", "the public address of the server is not set", hint)
    return CheckResult(
        "host", "ok", f"other machines reach the server at {settings.public_url}, through {settings.behind_proxy}"
    )


def _find_port_holder(settings: Settings) -> str | None:
    """Return why the server could not listen at its address, None if it could."""
    from web.stack.claim import bind, explain_port

    try:
        bind(settings)
    except OSError as error:
        return explain_port(settings, error)
    return None


def check_token(server: ServerProbe) -> Iterator[CheckResult]:
    """Check that there is a token and that the server accepts it."""
    file = server.settings.paths.token_file
    if not file.exists():
        state: Literal["warn", "fail"] = "fail" if server.is_up else "warn"
        hint = "the next start creates it: `reverie down`, `reverie up`"
        yield CheckResult("token", state, f"{file} does not exist", hint)
        return
    try:
        problem = None if file.read_text(encoding="ascii").strip() else f"{file} is empty"
    except (OSError, UnicodeDecodeError) as error:
        problem = f"cannot read {file}: {error}"
    hint = "delete it; the next start creates a new one"
    # Other checks report any other error.
    if problem is None and server.is_up and isinstance(server.workspaces, TokenRefused):
        problem = str(server.workspaces)
        hint = (
            "the server of another data directory may use the port: run `reverie down` there, or set REVERIE_PORT here"
        )
    yield _judge("token", str(file), problem, hint)


def check_processes(server: ServerProbe) -> Iterator[CheckResult]:
    """Check that all processes of the stack are running, or none of them."""
    from web.stack.processes import list_running

    running = {process.name for process in list_running(server.settings)}
    missing = [name for name in PROCESSES if name not in running]
    if len(missing) == len(PROCESSES) and not server.is_up:
        yield CheckResult("processes", "warn", "nothing is running", "start Reverie with `reverie up`")
        return
    problem = missing and f"not running: {', '.join(missing)}"
    yield _judge("processes", ", ".join(sorted(running)), problem or None, "run `reverie down`, then `reverie up`")


def check_project_memory(server: ServerProbe, folder: Path) -> Iterator[CheckResult]:
    """Report other workspaces that may contain earlier memories of the folder's project."""
    from pipeline.features.workspaces.config import is_in_use
    from pipeline.features.workspaces.usecases import choose_workspace, describe_earlier, list_earlier

    try:
        choice = choose_workspace(folder, server.settings, explicit=None, environment=environment_workspace())
        state: Literal["ok", "warn"] = "ok" if is_in_use(server.settings, choice.workspace) else "warn"
        earlier = list_earlier(server.settings, choice)
    except StoreUnavailable:
        # The check of the store reports it.
        return
    for name in earlier:
        count = server.workspaces.get(name) if isinstance(server.workspaces, dict) else None
        if count != 0:
            says, _, hint = describe_earlier(name, count, choice.workspace).partition(" If so, ")
            yield CheckResult("project memory", state, says, hint)


def check_hosts(context: "CheckContext") -> Iterator[CheckResult]:
    """Check that the settings of connected agents still contain what `reverie setup` has written."""
    from web.hosts import installed_files

    records = installed_files.read_state(context.paths.root)
    lost = [file for file in records if "reverie" not in read_lowered(Path(file))]
    names = ", ".join(sorted({host for record in records.values() for host in record.hosts}))
    problem = f"these files no longer mention Reverie: {', '.join(lost)}" if lost else None
    hint = "`reverie setup` shows the missing lines and asks before it writes"
    ok = names or "no agent is connected; connect yours with `reverie setup`"
    yield _judge("hosts", ok, problem, hint, "warn")


def check_recording(context: "CheckContext") -> Iterator[CheckResult]:
    """Check that what is said in connected agents is recorded."""
    from pipeline.features.diagnostics.recording_check import describe_problem
    from web.http.recording import check_hosts as check_recording_of_hosts

    recordings = check_recording_of_hosts(context.paths)
    for found in recordings:
        if found.problem is not None:
            yield CheckResult("recording", "fail", describe_problem(found), found.remedy or "")
    if not any(found.problem for found in recordings):
        names = ", ".join(found.host.name for found in recordings)
        yield CheckResult("recording", "ok", names or "no agent with hooks is connected")


def check_teams(context: "CheckContext") -> Iterator[CheckResult]:
    """Check that each connected team server answers and accepts the token: hooks do not report it."""
    from pipeline.features.team.connections import list_open_workspaces, list_teams

    problems: list[ReverieError] = []
    for server in list_teams(context.paths.servers, problems.append):
        try:
            list_open_workspaces(server)
            yield CheckResult("teams", "ok", f"{server.name} answers at {server.url} and accepts your token")
        except ReverieError as error:
            problems.append(error)
    hint = "`reverie team add` changes the address or token, `reverie team remove` disconnects the team"
    yield from (CheckResult("teams", "warn", str(problem), hint) for problem in problems)


def _run_job(settings: Settings, workspace_id: str, job: str) -> str:
    from web.features.maintenance.commands import open_worker, run_job

    with open_worker(settings) as worker:
        result = run_job(worker, workspace_id, job)
    if result.is_running_elsewhere:
        return f"{job} is already running in the background"
    return f"{job} failed: {result.error}" if result.error else f"{job} repaired: {result.describe()}"
