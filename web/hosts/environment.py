"""What a setup is told of the machine and of Reverie, so that it reads neither by itself."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from config.settings import ENVIRONMENT_PREFIX
from web.hooks.client import SERVER_OPTION

# What hosts start beside `reverie` itself and the client of hooks.
CODEX_NOTIFY_CLIENT = "reverie-codex-notify"
MAIN = "reverie"
# Variables that move a host's own folder.
HOST_VARIABLES = ("APPDATA", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME")


@dataclass(frozen=True, slots=True)
class HostEnvironment:
    """Where hosts keep their files, and how they are found."""

    home: Path
    platform: str
    which: Callable[[str], str | None]
    """Find a program by its name."""
    version: Callable[[str], tuple[int, ...] | None]
    """Ask a program for its version; None where it does not tell."""
    environment: Mapping[str, str] = field(default_factory=dict)
    project: Path | None = None
    """The folder to set up, for `--project`; otherwise the user's own files are meant."""

    @property
    def configuration(self) -> Path:
        """Return the folder under which programs keep their settings, by XDG."""
        return self.folder("XDG_CONFIG_HOME", self.home / ".config")

    @property
    def application_data(self) -> Path:
        """Return the folder under which desktop programs keep their settings on this platform."""
        if self.platform == "win32":
            return self.folder("APPDATA", self.home / "AppData" / "Roaming")
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.configuration

    def folder(self, variable: str, default: Path) -> Path:
        """Return the folder that a variable names, if it does, else the default."""
        given = self.environment.get(variable, "")
        return Path(given) if given and Path(given).is_absolute() else default


@dataclass(frozen=True, slots=True)
class RemoteServer:
    """A team's server: how it is called in the home, its address, and in a project the project's workspace there."""

    name: str
    url: str
    workspace: str | None = None


@dataclass(frozen=True, slots=True)
class Installation:
    """What hosts are told: the programs to start, and how those find home and server."""

    bin: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    """By which variables its programs find home and server, where neither is the usual one."""
    server: RemoteServer | None = None
    """The team's server that hosts are to ask, None for this machine's own."""

    def program(self, host_env: HostEnvironment, name: str) -> str:
        """Return how a host starts a program: by its path, in a project by its name if that is found everywhere."""
        suffix = ".exe" if host_env.platform == "win32" else ""
        installed = self.bin / f"{name}{suffix}"
        if (host_env.project is not None and host_env.which(name) is not None) or not (
            (self.bin / f"{MAIN}{suffix}").exists() or installed.exists()
        ):
            return name
        return str(installed)

    def variables_for(self, host_env: HostEnvironment) -> dict[str, str]:
        """Return the variables that a program needs to find home and server; none stand in a project's files."""
        return {} if host_env.project is not None else dict(self.variables)

    def options(self, host_env: HostEnvironment) -> list[str]:
        """Return the same as options of the clients, for hosts that start a program without variables of its own."""
        named = {name.removeprefix(ENVIRONMENT_PREFIX).lower(): v for name, v in self.variables_for(host_env).items()}
        return [*self.server_words, *(word for name, value in named.items() for word in (f"--{name}", value))]

    @property
    def server_words(self) -> list[str]:
        """Return the words by which a program is told of a team's server."""
        return [] if self.server is None else [SERVER_OPTION, self.server.name]


def programs_folder() -> Path:
    """Return the folder in which this Python's programs are installed."""
    return Path(sys.executable).parent
