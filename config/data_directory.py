"""Locate the data directory, for the settings and for the hook client, which does not import the settings."""
# ruff: noqa: PTH111, PTH117 - pathlib alone takes longer to import than the client of hooks runs

import os

VARIABLE = "REVERIE_HOME"
DEFAULT = "~/.reverie"


class NoDataDirectory(ValueError):
    """Report that no variable names the data directory. A default would create one in each folder."""


def find_data_directory(variables: dict[str, str]) -> str:
    """Return the absolute path that the variables name; raise NoDataDirectory if they name none."""
    named = variables.get(VARIABLE) or DEFAULT
    path = _expand_user(named, variables)
    if os.path.isabs(path):
        return path
    if named == DEFAULT:
        raise NoDataDirectory(
            f"neither {VARIABLE} nor HOME names the data directory; set {VARIABLE} to an absolute path"
        )
    hint = "; Reverie expands no variables in it" if "$" in named or "%" in named else ""
    raise NoDataDirectory(f"{VARIABLE} must be an absolute path, not {named!r}{hint}")


def _expand_user(path: str, variables: dict[str, str]) -> str:
    if "HOME" in variables and (path == "~" or path.startswith("~/")):
        # Without HOME, `expanduser` asks the system's list of users; with an empty HOME it returns the root folder.
        return variables["HOME"] + path[1:] if variables["HOME"] else path
    return os.path.expanduser(path)
