"""Start and stop the stack."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from config.access import list_problems
from pipeline.errors import ReverieError, StoreUnavailable
from web.cli.command import Command, State, pass_state
from web.cli.render import plain, show_waiting

if TYPE_CHECKING:
    from config.process import Role
    from config.settings import Settings

HEALTH_DEADLINE_S = 60.0
POLL_S = 0.1
LOG_TAIL_LINES = 25
# A log of this size makes room for a new one when the stack starts.
LARGEST_LOG = 10 * 1024 * 1024
LOG_TIME = "%Y-%m-%d %H:%M:%S"
_COLOURS = {"web": "cyan", "worker": "green", "scheduler": "magenta"}
NO_PUBLIC_URL = "`public_url` is not set: who calls this server by another name than this machine's own is refused"
NOT_COMPILED = "the first memory has the encoder compiled: once, about 20 s; until then recall goes by words alone"


class DaemonFailed(ReverieError):
    """Say that the stack did not come up in the background."""


@click.command(cls=Command)
@click.option("--daemon", is_flag=True, help="Start in the background and return once the server answers.")
@pass_state
def up(state: State, *, daemon: bool) -> None:
    """Start everything in the foreground; SIGTERM or Ctrl-C stops it all."""
    code = _run_stack(state.settings, daemon=daemon)
    if daemon:
        _start_daemon(state)
    else:
        click.get_current_context().exit(code)


@click.command(cls=Command)
@click.option("--host", metavar="ADDRESS", help="The address to listen on; beyond loopback only behind a proxy.")
@click.option("--port", type=click.IntRange(1, 65535), help="The port to listen on.")
@click.option(
    "--behind-proxy",
    metavar="ADDRESS",
    is_flag=False,
    flag_value="127.0.0.1",
    help="A proxy at this address, without one on this machine, ends TLS; it is believed what it says of its clients.",
)
@click.option("--only", type=click.Choice(["web", "worker", "scheduler"]), help="Run one process of the stack alone.")
def serve(host: str | None, port: int | None, behind_proxy: str | None, only: str | None) -> None:
    """Start everything for a team, in the foreground: as `up`, with what may differ from the settings."""
    from config.settings import ENVIRONMENT_PREFIX, environment_with, load_settings

    given = {"host": host, "port": port, "behind_proxy": behind_proxy}
    environment = environment_with(
        {f"{ENVIRONMENT_PREFIX}{name.upper()}": str(value) for name, value in given.items() if value is not None}
    )
    settings = load_settings(environment)
    if only is None:
        click.get_current_context().exit(_run_stack(settings, environment))
    _check_home(settings)
    _become(only, settings, environment)


def _become(process: str, settings: "Settings", environment: Mapping[str, str]) -> None:
    """Go on as one process of the stack: whoever started this one has that one to look after."""
    from web.supervisor import build_alone

    if process == "web":
        _check_listener(settings)
    command = build_alone(process, settings.worker_processes)
    os.execve(command[0], command, environment)  # noqa: S606 - our own command, without a shell


def _check_listener(settings: "Settings") -> None:
    # As long to import as a command takes: most stacks serve one person, on loopback.
    if settings.is_exposed:
        from pipeline.store.stores import opened_people
        from web.listener import check_listener

        with opened_people(settings) as people:
            check_listener(settings, people)


def _run_stack(settings: "Settings", environment: Mapping[str, str] | None = None, *, daemon: bool = False) -> int:
    """Run the stack until it is stopped; one that shall be a daemon's is only found to have its place."""
    from web.cli.processes import supervisor_role
    from web.supervisor import check_place

    _check_home(settings)
    _check_listener(settings)
    settings.paths.ensure()
    role = supervisor_role(settings)
    _take(role, settings)
    try:
        check_place(settings)
        return 0 if daemon else _supervise(settings, role, environment)
    finally:
        role.release()


def _take(role: "Role", settings: "Settings") -> None:
    from config.process import RoleTaken
    from web.supervisor import PlaceTaken

    try:
        role.take()
    except RoleTaken as error:
        pid = f" (pid {error.pid})" if error.pid else ""
        raise PlaceTaken(f"`reverie up` is already running on {settings.paths.root}{pid}") from error


def _supervise(settings: "Settings", role: "Role", environment: Mapping[str, str] | None) -> int:
    from config.program_variables import list_workspace_variables
    from config.settings import environment_with
    from web.supervisor import OWN_NAME, Supervisor, build_stack, listens, watch_idleness

    stack = build_stack(settings.worker_processes)
    say = speaker(sys.stdout, [command.name for command in stack])
    say(OWN_NAME, f"{settings.url}, home {settings.paths.root}")
    if settings.is_exposed and not settings.public_url:
        say(OWN_NAME, NO_PUBLIC_URL)
    for name in list_workspace_variables(environment or environment_with({})):
        say(OWN_NAME, f"{name} of this shell applies to every workspace until the stack stops")
    if not _has_encoder(settings):
        say(OWN_NAME, NOT_COMPILED)
    # Who needs the stack just as it stops can start the next one, which waits for this one's processes to end.
    supervisor = Supervisor(
        stack, say, on_stop=role.release, is_first_ready=lambda: listens(settings), environment=environment
    )
    end_watch = watch_idleness(settings, supervisor.stop)
    try:
        return supervisor.run()
    finally:
        end_watch()


def _has_encoder(settings: "Settings") -> bool:
    """Tell whether an encoder was ever compiled here, by the look of the folder: the models' code takes a second."""
    return any(settings.paths.models.glob("*/manifest.json"))


def speaker(stream: TextIO, names: Sequence[str]) -> Callable[[str, str], None]:
    """Return what prints a line under a name; when nobody reads any more, it goes on in silence."""
    from web.supervisor import OWN_NAME

    lock = threading.Lock()
    width = max(len(name) for name in (*names, OWN_NAME))
    colours = _COLOURS if stream.isatty() else {}
    silent = False

    def say(name: str, line: str) -> None:
        nonlocal silent
        if name == OWN_NAME:
            # The others' lines bring their own time along.
            line = f"{time.strftime(LOG_TIME)} {line}"
        label = click.style(f"{name:<{width}} |", fg=colours.get(name)) if colours else f"{name:<{width}} |"
        with lock:
            if silent:
                return
            try:
                stream.write(f"{label} {line}\n")
                stream.flush()
            except OSError:
                # The terminal or the pipe is gone; the processes' own output must still be taken from them.
                silent = True

    return say


@dataclass(frozen=True, slots=True)
class Launched:
    """A stack that was started in the background: its supervisor, its log, and where in the log it begins."""

    pid: int
    log: Path
    start: int

    def is_running(self) -> bool:
        """Tell whether the supervisor lives; it is nobody's child, so that nobody learns how it ended."""
        import psutil

        try:
            return bool(psutil.Process(self.pid).status() != psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return False


def launch(settings: "Settings") -> Launched:
    """Start the stack in the background, without waiting for it: by its service where that is installed."""
    from config.program_variables import select_daemon_variables
    from config.settings import environment_with
    from web.cli.service import start_installed
    from web.detached import start_detached

    settings.paths.ensure()
    log = settings.paths.logs / "reverie.log"
    if log.exists() and log.stat().st_size > LARGEST_LOG:
        log.replace(log.with_suffix(".log.1"))
    start = log.stat().st_size if log.exists() else 0
    pid = start_installed(settings)
    if pid is None:
        command = [sys.executable, "-u", "-I", "-m", "web.cli", "up"]
        pid = start_detached(command, select_daemon_variables(environment_with({}), settings.paths.root), str(log))
    return Launched(pid, log, start)


def _check_home(settings: "Settings") -> None:
    """Raise StoreUnavailable where nothing can run on a home, with what helps."""
    if problems := list_problems(settings.paths.root):
        raise StoreUnavailable("; ".join(problems))


def revive(state: State) -> bool:
    """Start a stack again that ended without having been asked to; tell whether it answers now.

    Raises StoreUnavailable where nothing can run on the home.
    """
    from web.cli.processes import supervisor_role

    _check_home(state.settings)
    if not supervisor_role(state.settings).was_abandoned():
        return False
    click.echo("Reverie had ended without being stopped; starting it again …", err=True)
    failure = _failure_to_start(state, launch(state.settings))
    if failure is not None:
        click.echo(f"it did not start: {failure}", err=True)
    return failure is None


def _start_daemon(state: State) -> None:
    launched = launch(state.settings)
    with show_waiting("starting", quiet=state.json):
        failure = _failure_to_start(state, launched)
    if failure is not None:
        click.echo(_tail(launched), err=True)
        raise DaemonFailed(f"{failure}; {launched.log} says more")
    if not _has_encoder(state.settings):
        click.echo(NOT_COMPILED, err=True)
    url, pid, log = state.settings.url, launched.pid, str(launched.log)
    state.show({"url": url, "pid": pid, "log": log}, f"{url} (pid {pid}, log {log})")


def _failure_to_start(state: State, launched: Launched) -> str | None:
    """Wait until the started stack answers; return what went wrong, None when it answers."""
    from pipeline.errors import ServerUnreachable
    from web.client import Client

    pause = threading.Event()
    end = time.monotonic() + HEALTH_DEADLINE_S
    # The server is asked for its health, whatever workspace this folder belongs to.
    with Client.from_settings(state.settings, timeout_s=5) as client:
        while launched.is_running():
            try:
                client.health()
            except ServerUnreachable:
                if time.monotonic() >= end:
                    os.kill(launched.pid, signal.SIGTERM)
                    return f"no answer within {HEALTH_DEADLINE_S:.0f} s"
            else:
                return None
            pause.wait(POLL_S)
    return "it ended again"


def _tail(launched: Launched) -> str:
    if not launched.log.exists():
        return ""
    with launched.log.open("rb") as file:
        file.seek(launched.start)
        lines = file.read().decode(errors="replace").splitlines()
    return "\n".join(plain(line) for line in lines[-LOG_TAIL_LINES:])


@click.command(cls=Command)
@pass_state
def down(state: State) -> None:
    """Stop everything that runs on this home, whoever started it."""
    from web.cli.processes import list_running, stop_all

    if not list_running(state.settings):
        if state.json:
            state.print_json({"stopped": []})
        else:
            click.echo(f"nothing runs on {state.settings.paths.root}")
        return
    with show_waiting("stopping", quiet=state.json):
        stopped = stop_all(state.settings)
    left = list_running(state.settings)
    if left:
        raise ReverieError("still running: " + ", ".join(f"{p.name} (pid {p.pid})" for p in left))
    state.show(
        {"stopped": [{"name": p.name, "pid": p.pid} for p in stopped]},
        "stopped " + ", ".join(f"{p.name} (pid {p.pid})" for p in stopped),
    )
