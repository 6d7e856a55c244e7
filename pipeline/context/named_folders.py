"""Find the folders that a tool call names, without reading them."""

import os.path
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path

from pipeline.store.agent_sessions import ActionType
from pipeline.text.command_lines import Invocation, list_invocations
from pipeline.write.tool_actions import ToolTarget

# Maximum number of folders of a call, and length of a path.
MOST_FOLDERS = 8
LONGEST_PATH = 1000
# Options of programs that change the folder first.
_FOLDER_OPTIONS = frozenset({"-C", "--directory", "--cwd", "--prefix", "--work-tree"})


def list_named_folders(targets: Sequence[ToolTarget], cwd: str) -> list[str]:
    """Return the absolute folders of the files that a call names, and those that its commands run in."""
    found = (folder for target in targets for folder in _list_folders(target, cwd))
    return list(islice(dict.fromkeys(folder for folder in found if Path(folder).is_absolute()), MOST_FOLDERS))


def _list_folders(target: ToolTarget, cwd: str) -> Iterator[str]:
    if target.type is ActionType.EDIT:
        yield str(Path(_join(cwd, target.target)).parent)
        return
    for invocation in list_invocations(target.target):
        if not invocation.is_wrapper:
            yield from _list_folders_of_command(invocation, cwd)


def _list_folders_of_command(invocation: Invocation, cwd: str) -> Iterator[str]:
    base = cwd
    for folder in invocation.folders:
        base = base if folder.startswith("-") else _join(base, folder)
    options = [word.partition("=")[::2] for word in invocation.words if "=" in word]
    for option, value in [*pairwise(invocation.words), *options]:
        if option in _FOLDER_OPTIONS:
            base = _join(base, value)
    if base != cwd:
        yield base
    for word in (*invocation.words[1:], *invocation.files):
        path = word.partition("=")[2] if word.startswith("--") else word
        if "/" in path and "://" not in path and len(path) <= LONGEST_PATH and not any(map(str.isspace, path)):
            full = _join(base, path)
            yield full if os.path.isdir(full) else str(Path(full).parent)  # noqa: PTH112 - answers for every path


def _join(folder: str, path: str) -> str:
    expanded = os.path.expanduser(path.replace("\0", ""))  # noqa: PTH111 - Path.expanduser raises for unknown users
    # A parent folder in a path need not exist.
    return os.path.normpath(Path(folder, expanded))
