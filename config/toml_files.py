"""Read and parse settings files (TOML)."""

from pathlib import Path
from typing import Any

# Windows editors write it at the start of a file; it is not valid TOML.
BYTE_ORDER_MARK = "\ufeff"


class SettingsError(Exception):
    """Report which setting is invalid, where it is set, and the probable intention."""


class UnreadableSettings(SettingsError):
    """Report why a settings file cannot be read."""


def read_text(file: Path) -> str:
    """Return the text of a settings file, "" if there is none; raise UnreadableSettings if it cannot be read."""
    try:
        # Read as bytes to keep the line ends.
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UnreadableSettings(f"{file}: not UTF-8 (at line {line}): {error}") from error
    except OSError as error:
        raise UnreadableSettings(f"{file}: {error.strerror or error}") from error


def parse_toml(text: str, source: str) -> dict[str, Any]:
    """Parse settings; `source` names them in errors. Raise UnreadableSettings for invalid TOML."""
    if not text:
        return {}
    # Most data directories have no such file.
    import tomllib

    try:
        return tomllib.loads(text.removeprefix(BYTE_ORDER_MARK))
    except ValueError as error:
        raise UnreadableSettings(f"{source}: {error}") from error
    except RecursionError as error:
        raise UnreadableSettings(f"{source}: its values are nested too deeply") from error
