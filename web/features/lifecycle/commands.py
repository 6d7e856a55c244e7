"""Start and stop the stack: the web server, the workers and the scheduler, also at every login."""

import os
import shlex
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import click

from config.paths import list_encoder_caches
from config.program_variables import list_workspace_variables
from config.settings import AUTO, ENVIRONMENT_PREFIX, Settings, environment_with, load_settings
from pipeline.kernel.errors import ReverieError
from web.cli.command import Command, Group, pass_state
from web.cli.render import plain, show_waiting
from web.cli.state import State, find_user_home
from web.stack.claim import claim, listens
from web.stack.procfile import read_procfile
from web.stack.service_manager import ManagerOutcome, run_manager, service_of
from web.stack.stack import Stack, check_data_directory
from web.stack.supervisor import OWN_NAME, Supervisor, watch_idleness

if TYPE_CHECKING:
    from config.process import Role
    from web.stack.processes import Running

LOG_TAIL_LINES = 25
LOG_TIME = "%Y-%m-%d %H:%M:%S"
_COLOURS = {"web": "cyan", "worker": "green", "scheduler": "magenta"}
NO_PUBLIC_URL = "`public_url` is not set: the server rejects requests that name another host than this machine"
NOT_COMPILED = "the first memory compiles the embedding model (once, about 20 s); until then recall matches words only"


class DaemonFailed(ReverieError):
    """Report that the stack did not start in the background."""


@click.command(cls=Command)
@click.option("--daemon", is_flag=True, help="Start in the background and return once the server answers.")
@click.option("--replace", is_flag=True, hidden=True, help="Stop an older version in the background first.")
@click.option("--exit-with-parent", metavar="PID", type=int, help="Stop when the process with this ID ends.")
@pass_state
def up(state: State, *, daemon: bool, replace: bool, exit_with_parent: int | None) -> None:
    """Start Reverie in the foreground; Ctrl-C or SIGTERM stops it."""
    if exit_with_parent is not None:
        if daemon:
            raise click.UsageError("--exit-with-parent excludes --daemon: a stack in the background keeps running.")
        from config.process import stop_with_process

        stop_with_process(exit_with_parent)
    if replace and not Stack(state.settings).stop_older():
        return
    code = _run_stack(state.settings, daemon=daemon)
    if daemon:
        _start_daemon(state)
    else:
        click.get_current_context().exit(code)


@click.command(cls=Command)
@click.option("--host", metavar="ADDRESS", help="Address to listen on. Beyond loopback, a proxy is required.")
@click.option("--port", type=click.IntRange(1, 65535), help="Port to listen on.")
@click.option(
    "--behind-proxy",
    metavar="ADDRESS",
    is_flag=False,
    flag_value="127.0.0.1",
    help="Address of the reverse proxy that terminates TLS (default: this machine). Reverie trusts the client address "
    "that it forwards.",
)
@click.option("--only", type=click.Choice(["web", "worker", "scheduler"]), help="Run a single process of the stack.")
def serve(host: str | None, port: int | None, behind_proxy: str | None, only: str | None) -> None:
    """Start Reverie for a team, in the foreground; options override settings."""
    from web.cli.state import warn_if_replaced

    options = {"host": host, "port": port, "behind_proxy": behind_proxy}
    environment = environment_with(
        {f"{ENVIRONMENT_PREFIX}{name.upper()}": str(value) for name, value in options.items() if value is not None}
    )
    settings = load_settings(environment)
    warn_if_replaced(settings, environment_with({}), find_user_home())
    if only is None:
        click.get_current_context().exit(_run_stack(settings, environment))
    check_data_directory(settings)
    _replace_process(only, settings, environment)


def _replace_process(name: str, settings: Settings, environment: Mapping[str, str]) -> None:
    """Replace this process by one process of the stack, so that the caller supervises it directly."""
    if name == "web":
        _check_listener(settings)
    processes = {process.name: process for process in read_procfile(settings.worker_processes)}
    command = processes[name].alone()
    os.execve(command[0], command, environment)  # noqa: S606 - our own command, without a shell


def _check_listener(settings: Settings) -> None:
    # These imports take as long as a command; most stacks serve one person on loopback.
    if settings.is_exposed:
        from pipeline.kernel.store.stores import opened_people
        from web.http.listener import check_listener

        with opened_people(settings) as people:
            check_listener(settings, people)


def _run_stack(settings: Settings, environment: Mapping[str, str] | None = None, *, daemon: bool = False) -> int:
    """Run the stack until it is stopped; with `daemon`, only check that it can start."""
    check_data_directory(settings)
    _check_listener(settings)
    with claim(settings) as role:
        return 0 if daemon else _supervise(settings, role, environment)


def _supervise(settings: Settings, role: "Role", environment: Mapping[str, str] | None) -> int:
    stack = read_procfile(settings.worker_processes)
    say = speaker(sys.stdout, [command.name for command in stack])
    say(OWN_NAME, f"{settings.url}, data directory {settings.paths.root}")
    if settings.is_exposed and not settings.public_url:
        say(OWN_NAME, NO_PUBLIC_URL)
    for name in list_workspace_variables(environment or environment_with({})):
        say(OWN_NAME, f"{name} of this shell applies to every workspace until the stack stops")
    if not _has_encoder(settings):
        say(OWN_NAME, NOT_COMPILED)
    # A client that needs the stack while it stops can start the next one, which waits for these processes to end.
    supervisor = Supervisor(
        stack, say, on_stop=role.release, is_first_ready=lambda: listens(settings), environment=environment
    )
    end_watch = watch_idleness(settings, supervisor.stop)
    try:
        return supervisor.run()
    finally:
        end_watch()
        for problem in _complete_files(settings):
            say(OWN_NAME, problem)


def _complete_files(settings: Settings) -> Iterator[str]:
    """Complete the main files of the stores after the stack has stopped; yield what remains to be done."""
    from pipeline.features.maintenance.usecases import complete_store_files

    return complete_store_files(settings)


def _has_encoder(settings: Settings) -> bool:
    """Tell whether a model was ever compiled, by its files: importing the model code takes a second."""
    if any(settings.paths.models.glob("*/manifest.json")):
        return True
    is_default = settings.embedding_model == AUTO
    return is_default and any(any(cache.glob("*/*/manifest.json")) for cache in list_encoder_caches())


def speaker(stream: TextIO, names: Sequence[str]) -> Callable[[str, str], None]:
    """Return a function that prints a line with the name of a process; it stays silent once the stream is closed."""
    lock = threading.Lock()
    width = max(len(name) for name in (*names, OWN_NAME))
    colours = _COLOURS if stream.isatty() else {}
    silent = False

    def say(name: str, line: str) -> None:
        nonlocal silent
        if name == OWN_NAME:
            # The lines of the other processes already contain the time.
            line = f"{time.strftime(LOG_TIME)} {line}"
        label = click.style(f"{name:<{width}} |", fg=colours.get(name)) if colours else f"{name:<{width}} |"
        with lock:
            if silent:
                return
            try:
                stream.write(f"{label} {line}\n")
                stream.flush()
            except OSError:
                # The terminal or pipe is closed; the output of the processes must still be read.
                silent = True

    return say


def _start_daemon(state: State) -> None:
    stack = Stack(state.settings)
    with show_waiting("starting", quiet=state.json):
        stack.start()
        failure = stack.wait()
    if failure is not None:
        click.echo("\n".join(plain(line) for line in stack.read_log(LOG_TAIL_LINES)), err=True)
        raise DaemonFailed(f"Reverie did not start: {failure}. See {stack.log}.")
    if not _has_encoder(state.settings):
        click.echo(NOT_COMPILED, err=True)
    url, pid, log = state.settings.url, stack.pid, str(stack.log)
    state.show({"url": url, "pid": pid, "log": log}, f"{url} (pid {pid}, log {log})")


@click.command(cls=Command)
@pass_state
def down(state: State) -> None:
    """Stop all processes of Reverie that run on this data directory."""
    from web.stack.processes import list_running, stop_all

    stopped: list[Running] = []
    if list_running(state.settings):
        with show_waiting("stopping", quiet=state.json):
            stopped = stop_all(state.settings)
        if left := _list_processes(list_running(state.settings)):
            raise ReverieError(f"Some processes did not stop: {left}. Run `reverie down` again.")
    for problem in _complete_files(state.settings):
        click.echo(problem, err=True)
    nothing = f"nothing runs on {state.settings.paths.root}"
    answer = {"stopped": [{"name": p.name, "pid": p.pid} for p in stopped]}
    state.show(answer, f"stopped {_list_processes(stopped)}" if stopped else nothing)


def _list_processes(running: "Sequence[Running]") -> str:
    return ", ".join(f"{process.name} (pid {process.pid})" for process in running)


# A parameter, because commands do not read the environment.
configuration_folder = click.option("--xdg_config_home", envvar="XDG_CONFIG_HOME", hidden=True)


@click.group(cls=Group)
def service() -> None:
    """Start Reverie at every login, or stop doing so."""


@service.command()
@configuration_folder
@click.option("--dry-run", is_flag=True, help="Show the file and the commands without running them.")
@pass_state
def install(state: State, xdg_config_home: str | None, *, dry_run: bool) -> int:
    """Install the user service: start Reverie now and at every login."""
    from web.stack.processes import stop_all

    target = service_of(sys.platform, find_user_home(), xdg_config_home, state.settings)
    if dry_run:
        text = target.text.decode()
        commands = [shlex.join([target.manager, *arguments]) for arguments in target.install]
        answer = {"file": str(target.file), "text": text, "left_to_do": commands}
        _report(state, answer, f"would write {target.file}:\n\n{text}", ManagerOutcome(commands))
        return 0
    state.settings.paths.ensure()
    target.file.parent.mkdir(parents=True, exist_ok=True)
    target.file.write_bytes(target.text)
    if shutil.which(target.manager) is not None:
        # A stack that is already running would keep the service from starting.
        stop_all(state.settings)
    outcome = run_manager(target.manager, target.install)
    answer = {"file": str(target.file), "left_to_do": outcome.left, "problem": outcome.problem or ""}
    _report(state, answer, f"written {target.file}", outcome)
    return 0 if outcome.problem is None else 1


@service.command()
@configuration_folder
@pass_state
def remove(state: State, xdg_config_home: str | None) -> None:
    """Stop Reverie and remove the user service; memories are kept."""
    target = service_of(sys.platform, find_user_home(), xdg_config_home, state.settings)
    if not target.file.exists():
        _report(state, {"file": None, "left_to_do": []}, f"there is no {target.file}", ManagerOutcome([]))
        return
    before = run_manager(target.manager, target.remove)
    target.file.unlink()
    after = run_manager(target.manager, target.forget)
    outcome = ManagerOutcome(before.left + after.left, before.problem or after.problem)
    _report(state, {"file": str(target.file), "left_to_do": outcome.left}, f"deleted {target.file}", outcome)


def _report(state: State, answer: dict[str, Any], line: str, outcome: ManagerOutcome) -> None:
    state.show(answer, line)
    for remark in (outcome.problem, *(f"run by hand: {command}" for command in outcome.left)):
        if remark is not None:
            state.note(remark)
