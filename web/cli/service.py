"""Reverie as a service of the user: started at login, by systemd or launchd, and kept running."""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.errors import ReverieError
from web.cli.command import Command, Group, State, find_user_home, pass_state
from web.cli.render import plain

if TYPE_CHECKING:
    from config.settings import Settings

UNIT = "reverie.service"
LABEL = "dev.reverie"
MANAGER_TIMEOUT_S = 60
ARGUMENTS = ("-u", "-I", "-m", "web.cli", "up")


class NoService(ReverieError):
    """Say that this platform has no manager of services that Reverie knows."""


@dataclass(frozen=True, slots=True)
class ManagerOutcome:
    """What is left to be told the manager by hand, and why it refused, if it did."""

    left: list[str]
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Service:
    """A service's file and text, the program that manages it, and what to tell that program."""

    file: Path
    text: bytes
    manager: str
    install: tuple[tuple[str, ...], ...]
    remove: tuple[tuple[str, ...], ...]
    forget: tuple[tuple[str, ...], ...] = ()
    """What to tell the manager once the file is gone."""


class _ServiceCommand(Command):
    """A command; the variable that moves settings comes as a parameter that nobody types."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.append(click.Option(["--xdg_config_home"], envvar="XDG_CONFIG_HOME", hidden=True))


@click.group(cls=Group)
def service() -> None:
    """Start Reverie at every login, or no longer."""


@service.command(cls=_ServiceCommand)
@click.option("--dry-run", is_flag=True, help="Show the file and the commands, and do nothing.")
@pass_state
def install(state: State, xdg_config_home: str | None, *, dry_run: bool) -> int:
    """Write the service's file, and start Reverie now and at every login."""
    from web.cli.processes import stop_all

    found = service_of(sys.platform, find_user_home(), xdg_config_home, state.settings)
    if dry_run:
        text, commands = found.text.decode(), [shlex.join([found.manager, *arguments]) for arguments in found.install]
        answer = {"file": str(found.file), "text": text, "left_to_do": commands}
        _say(state, answer, f"would write {found.file}:\n\n{text}", ManagerOutcome(commands))
        return 0
    state.settings.paths.ensure()
    found.file.parent.mkdir(parents=True, exist_ok=True)
    found.file.write_bytes(found.text)
    if shutil.which(found.manager) is not None:
        # A stack that somebody else started would keep the service's own from coming up.
        stop_all(state.settings)
    told = _tell_manager(found.manager, found.install)
    answer = {"file": str(found.file), "left_to_do": told.left, "problem": told.problem or ""}
    _say(state, answer, f"written {found.file}", told)
    return 0 if told.problem is None else 1


@service.command(cls=_ServiceCommand)
@pass_state
def remove(state: State, xdg_config_home: str | None) -> None:
    """Stop Reverie and delete the service's file; the memories stay."""
    found = service_of(sys.platform, find_user_home(), xdg_config_home, state.settings)
    if not found.file.exists():
        _say(state, {"file": None, "left_to_do": []}, f"there is no {found.file}", ManagerOutcome([]))
        return
    before = _tell_manager(found.manager, found.remove)
    found.file.unlink()
    after = _tell_manager(found.manager, found.forget)
    told = ManagerOutcome(before.left + after.left, before.problem or after.problem)
    _say(state, {"file": str(found.file), "left_to_do": told.left}, f"deleted {found.file}", told)


def start_installed(settings: "Settings") -> int | None:
    """Start the service of these settings where systemd has it; return its process id, None where it has not."""
    program = shutil.which("systemctl") if sys.platform.startswith("linux") else None
    if program is None:
        return None
    file = _ask(program, "show", "--property=FragmentPath", "--value", UNIT)
    try:
        # The service of another home, or of another Python, is not this one.
        # Where the user's home is makes no difference to the text.
        if not file or Path(file).read_bytes() != service_of(sys.platform, Path(), None, settings).text:
            return None
    except OSError:
        return None
    _ask(program, "start", UNIT)
    return int(_ask(program, "show", "--property=MainPID", "--value", UNIT) or 0) or None


def _ask(program: str, *arguments: str) -> str:
    """Return what the manager of the user's services answers, nothing where it does not."""
    try:
        done = subprocess.run(  # noqa: S603 - the platform's own program
            [program, "--user", *arguments], capture_output=True, text=True, timeout=MANAGER_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return ""
    return "" if done.returncode else done.stdout.strip()


def service_of(platform: str, home: Path, xdg_config_home: str | None, settings: "Settings") -> Service:
    """Return the service of a platform; raise NoService where there is none."""
    from config.program_variables import list_moving_variables
    from config.settings import ENVIRONMENT_PREFIX

    root = settings.paths.root
    command = (sys.executable, *ARGUMENTS)
    variables = {f"{ENVIRONMENT_PREFIX}HOME": str(root)} | list_moving_variables(settings)
    if platform == "darwin":
        import plistlib

        file = home / "Library" / "LaunchAgents" / f"{LABEL}.plist"
        text = plistlib.dumps(
            {
                "Label": LABEL,
                "ProgramArguments": list(command),
                "EnvironmentVariables": variables,
                "RunAtLoad": True,
                # Also after a SIGKILL, which launchd calls no crash; a port that is taken is tried once a minute.
                "KeepAlive": {"SuccessfulExit": False},
                "ThrottleInterval": 60,
                "StandardOutPath": str(root / "logs" / "reverie.log"),
                "StandardErrorPath": str(root / "logs" / "reverie.log"),
            }
        )
        return Service(file, text, "launchctl", (("load", "-w", str(file)),), (("unload", "-w", str(file)),))
    if platform.startswith("linux"):
        configuration = Path(xdg_config_home) if xdg_config_home else home / ".config"
        file = configuration / "systemd" / "user" / UNIT
        return Service(
            file,
            _unit(command, variables).encode(),
            "systemctl",
            (("--user", "daemon-reload"), ("--user", "enable", "--now", UNIT)),
            (("--user", "disable", "--now", UNIT),),
            (("--user", "daemon-reload"),),
        )
    raise NoService("there is no service for this platform; start it with `reverie up --daemon`")


def _unit(command: tuple[str, ...], variables: Mapping[str, str]) -> str:
    return f"""[Unit]
Description=Reverie, memory for AI coding agents

[Service]
ExecStart={" ".join(_quote_word(word.replace("$", "$$")) for word in command)}
Environment={" ".join(_quote_word(f"{name}={value}") for name, value in variables.items())}
Restart=on-failure
RestartPreventExitStatus=1 2
TimeoutStopSec=20

[Install]
WantedBy=default.target
"""


def _quote_word(word: str) -> str:
    """Return a word as systemd reads it: with its own escapes, and `%` taken literally."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _tell_manager(manager: str, commands: tuple[tuple[str, ...], ...]) -> ManagerOutcome:
    """Tell the manager; return what is left to be told by hand because it is not there or refuses, as without a bus."""
    program = shutil.which(manager)
    for done, arguments in enumerate(commands):
        problem = None if program is None else _find_refusal(program, manager, arguments)
        if program is None or problem is not None:
            return ManagerOutcome([shlex.join([manager, *left]) for left in commands[done:]], problem)
    return ManagerOutcome([])


def _find_refusal(program: str, manager: str, arguments: tuple[str, ...]) -> str | None:
    told = subprocess.run(  # noqa: S603 - the platform's own program
        [program, *arguments], capture_output=True, text=True, timeout=MANAGER_TIMEOUT_S, check=False
    )
    said = " ".join((told.stderr or told.stdout).split())
    return f"`{shlex.join([manager, *arguments])}` failed: {said}" if told.returncode else None


def _say(state: State, answer: dict[str, Any], line: str, told: ManagerOutcome) -> None:
    if state.json:
        state.print_json(answer)
        return
    click.echo(line)
    if told.problem is not None:
        click.echo(plain(told.problem), err=True)
    for command in told.left:
        click.echo(f"left to do: {command}", err=True)
