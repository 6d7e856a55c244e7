"""Where the data directory is: one rule for the settings and for the client of hooks, which imports no settings."""
# ruff: noqa: PTH111, PTH117 - pathlib alone takes longer to import than the client of hooks runs

import os

VARIABLE = "REVERIE_HOME"
DEFAULT = "~/.reverie"


class NoDataDirectory(ValueError):
    """Say why no variable names the data directory; a guess would make one in each folder."""


def find_data_directory(variables: dict[str, str]) -> str:
    """Return the absolute path that the variables name; raise NoDataDirectory where they name none."""
    named = variables.get(VARIABLE) or DEFAULT
    path = _expand_user(named, variables)
    if os.path.isabs(path):
        return path
    if named == DEFAULT:
        raise NoDataDirectory(
            f"neither {VARIABLE} nor HOME says where the data directory is; set {VARIABLE} to an absolute path"
        )
    hint = "; Reverie expands no variables in it" if "$" in named or "%" in named else ""
    raise NoDataDirectory(f"{VARIABLE} must be an absolute path, not {named!r}{hint}")


def _expand_user(path: str, variables: dict[str, str]) -> str:
    if "HOME" in variables and (path == "~" or path.startswith("~/")):
        # Without HOME, `expanduser` asks the system's list of users; an empty HOME it would take for the root folder.
        return variables["HOME"] + path[1:] if variables["HOME"] else path
    return os.path.expanduser(path)
