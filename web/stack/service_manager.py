"""The user service of Reverie: its file for systemd or launchd, and commands to the service manager."""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from config.program_variables import list_moving_variables
from config.settings import ENVIRONMENT_PREFIX, Settings
from pipeline.kernel.errors import ReverieError
from web.stack.stack import UP

UNIT = "reverie.service"
LABEL = "dev.reverie"
MANAGER_TIMEOUT_S = 60


class NoService(ReverieError):
    """Report that Reverie supports no service manager on this platform."""


@dataclass(frozen=True, slots=True)
class ManagerOutcome:
    """The commands that the user still has to run, and why the service manager failed, if it did."""

    left: list[str]
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Service:
    """The file of a service, the program that manages it, and the arguments for that program."""

    file: Path
    text: bytes
    manager: str
    install: tuple[tuple[str, ...], ...]
    remove: tuple[tuple[str, ...], ...]
    forget: tuple[tuple[str, ...], ...] = ()
    """Arguments for the time after the file is deleted."""


def start_installed(settings: Settings) -> int | None:
    """Start the systemd service of these settings and return its process ID, or None if it is not installed."""
    program = _find_manager(settings)
    if program is None:
        return None
    _query(program, "start", UNIT)
    return _read_main_process(program)


def restart_installed(settings: Settings, process_id: int) -> bool:
    """Request a restart of the systemd service of these settings if it runs as this process; return whether it does.

    When that process ends, systemd also ends the others of the service, such as a program that the web server started.
    """
    program = _find_manager(settings)
    if program is None or _read_main_process(program) != process_id:
        return False
    _query(program, "restart", "--no-block", UNIT)
    return True


def _find_manager(settings: Settings) -> str | None:
    """Return the path of systemctl if the systemd service of these settings is installed, else None."""
    program = shutil.which("systemctl") if sys.platform.startswith("linux") else None
    if program is None:
        return None
    file = _query(program, "show", "--property=FragmentPath", "--value", UNIT)
    try:
        # A service of another data directory or another Python has a different text.
        # The user's home folder does not appear in the text.
        if not file or Path(file).read_bytes() != service_of(sys.platform, Path(), None, settings).text:
            return None
    except OSError:
        return None
    return program


def _read_main_process(program: str) -> int | None:
    return int(_query(program, "show", "--property=MainPID", "--value", UNIT) or 0) or None


def _query(program: str, *arguments: str) -> str:
    """Return the output of the user's service manager, "" if it fails."""
    try:
        done = subprocess.run(  # noqa: S603 - the platform's own program
            [program, "--user", *arguments], capture_output=True, text=True, timeout=MANAGER_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return ""
    return "" if done.returncode else done.stdout.strip()


def service_of(platform: str, home: Path, xdg_config_home: str | None, settings: Settings) -> Service:
    """Return the service for a platform; raise NoService if there is none."""
    root = settings.paths.root
    command = (sys.executable, *UP)
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
                # launchd does not count SIGKILL as a crash; if the port is in use, it tries again once a minute.
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
            _format_unit(command, variables).encode(),
            "systemctl",
            (("--user", "daemon-reload"), ("--user", "enable", "--now", UNIT)),
            (("--user", "disable", "--now", UNIT),),
            (("--user", "daemon-reload"),),
        )
    raise NoService(
        "Reverie cannot install a service on this platform. Start it in the background with `reverie up --daemon`."
    )


def _format_unit(command: tuple[str, ...], variables: Mapping[str, str]) -> str:
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
    """Quote a word for systemd, with its own escapes and a literal `%`."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def run_manager(manager: str, commands: tuple[tuple[str, ...], ...]) -> ManagerOutcome:
    """Run commands of the service manager; stop at the first that fails, or if the manager is missing."""
    program = shutil.which(manager)
    for done, arguments in enumerate(commands):
        problem = None if program is None else _run_command(program, manager, arguments)
        if program is None or problem is not None:
            return ManagerOutcome([shlex.join([manager, *left]) for left in commands[done:]], problem)
    return ManagerOutcome([])


def _run_command(program: str, manager: str, arguments: tuple[str, ...]) -> str | None:
    """Run one command; return why it failed, else None."""
    done = subprocess.run(  # noqa: S603 - the platform's own program
        [program, *arguments], capture_output=True, text=True, timeout=MANAGER_TIMEOUT_S, check=False
    )
    output = " ".join((done.stderr or done.stdout).split())
    return f"`{shlex.join([manager, *arguments])}` failed: {output}" if done.returncode else None
