"""Where the programs of a user keep their files on this machine."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Places:
    """Where agents keep their files: the user's home, the environment variables, and the platform (`sys.platform`)."""

    home: Path
    environment: Mapping[str, str]
    platform: str

    def folder(self, variable: str, *default: str) -> Path:
        """Return the folder that an environment variable names, else a folder below the user's home."""
        value = self.environment.get(variable, "").strip()
        if not value:
            return self.home.joinpath(*default)
        return self.expand(value)

    @property
    def xdg_config(self) -> Path:
        """Return the folder of settings by the XDG specification, which ignores a relative path."""
        folder = self.folder("XDG_CONFIG_HOME", ".config")
        return folder if folder.is_absolute() else self.home / ".config"

    def expand(self, text: str) -> Path:
        """Return the path that a text names; `~` is the user's home."""
        return self.home / text[1:].lstrip("/\\") if text.startswith("~") else Path(text)

    def shorten(self, path: Path) -> str:
        """Return a path with `~` for the user's home."""
        return f"~/{path.relative_to(self.home).as_posix()}" if path.is_relative_to(self.home) else path.as_posix()
