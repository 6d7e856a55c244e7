"""Information about the machine and about Reverie that a setup needs."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from config.settings import ENVIRONMENT_PREFIX
from web.hooks.client import SERVER_OPTION

# Programs that hosts start in addition to `reverie` and the hook client.
CODEX_NOTIFY_CLIENT = "reverie-codex-notify"
MAIN = "reverie"
# Variables that move a host's configuration folder.
HOST_VARIABLES = (
    "APPDATA",
    "CLAUDE_CONFIG_DIR",
    "CLINE_DATA_DIR",
    "CLINE_DIR",
    "CODEX_HOME",
    "COPILOT_HOME",
    "PI_CODING_AGENT_DIR",
    "QWEN_HOME",
    "XDG_CONFIG_HOME",
)


@dataclass(frozen=True, slots=True)
class HostEnvironment:
    """Where hosts store their files, and how to detect hosts."""

    home: Path
    platform: str
    which: Callable[[str], str | None]
    """Find a program by its name."""
    version: Callable[[str], tuple[int, ...] | None]
    """Ask a program for its version; None if it reports none."""
    environment: Mapping[str, str] = field(default_factory=dict)
    project: Path | None = None
    """The folder to set up, for `--project`; otherwise the user's files are set up."""

    @property
    def configuration(self) -> Path:
        """Return the XDG folder of programs' settings."""
        return self.folder("XDG_CONFIG_HOME", self.home / ".config")

    @property
    def application_data(self) -> Path:
        """Return the folder of desktop programs' settings on this platform."""
        if self.platform == "win32":
            return self.folder("APPDATA", self.home / "AppData" / "Roaming")
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.configuration

    def folder(self, variable: str, default: Path) -> Path:
        """Return the folder that a variable names, or the default."""
        folder = self.environment.get(variable, "")
        return Path(folder) if folder and Path(folder).is_absolute() else default


@dataclass(frozen=True, slots=True)
class RemoteServer:
    """A team server: its local name, its address and, for a project, the project's workspace on it."""

    name: str
    url: str
    workspace: str | None = None


@dataclass(frozen=True, slots=True)
class Installation:
    """The programs that hosts start, and how those programs locate the data directory and the server."""

    bin: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables that name the data directory and the server, if they are not the default."""
    server: RemoteServer | None = None
    """The team server that hosts use, or None for this machine's server."""

    def program(self, host_env: HostEnvironment, name: str) -> str:
        """Return the command for a program: its path or, in a project, its name if that is on every user's PATH."""
        suffix = ".exe" if host_env.platform == "win32" else ""
        installed = self.bin / f"{name}{suffix}"
        if (host_env.project is not None and host_env.which(name) is not None) or not (
            (self.bin / f"{MAIN}{suffix}").exists() or installed.exists()
        ):
            return name
        return str(installed)

    def variables_for(self, host_env: HostEnvironment) -> dict[str, str]:
        """Return the variables that a program needs to locate data directory and server; none in a project's files."""
        return {} if host_env.project is not None else dict(self.variables)

    def options(self, host_env: HostEnvironment) -> list[str]:
        """Return the same information as command options, for hosts that cannot set variables."""
        named = {name.removeprefix(ENVIRONMENT_PREFIX).lower(): v for name, v in self.variables_for(host_env).items()}
        return [*self.server_arguments, *(word for name, value in named.items() for word in (f"--{name}", value))]

    @property
    def server_arguments(self) -> list[str]:
        """Return the command arguments that select a team server."""
        return [] if self.server is None else [SERVER_OPTION, self.server.name]


def programs_folder() -> Path:
    """Return the folder of this Python's programs."""
    return Path(sys.executable).parent
