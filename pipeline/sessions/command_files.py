"""Leave out of a prompt what a command file says: whoever wrote the file speaks there, not the person."""

import json
import os
import stat
import tomllib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from pipeline.text.command_templates import find_arguments

# The folders with the commands of hosts, in a project and in the home folder.
FOLDERS = (
    *(".opencode/command", ".opencode/commands", ".kilo/command", ".kilo/commands", ".kilocode/workflows"),
    *(".claude/commands", ".gemini/commands", ".qwen/commands", ".codex/prompts", ".cursor/commands"),
    *(".github/prompts", ".pi/prompts", ".omp/commands", ".clinerules/workflows", ".roo/commands", ".factory/commands"),
)
OF_HOME = (
    *(".config/opencode/command", ".config/opencode/commands", ".config/kilo/command", ".config/kilo/commands"),
    *(".pi/agent/prompts", ".omp/agent/commands"),
)
# Files of settings that contain commands.
SETTINGS = ("opencode.json", ".opencode/opencode.json", ".config/opencode/opencode.json", "kilo.json")
SUFFIXES = (".md", ".toml")
MOST_FILES = 200
LARGEST_FILE = 1 << 16
MOST_PARENTS = 12
_FENCE = "---"


def drop_command_text(message: str, folder: str) -> str:
    """Return a prompt without the text of a command file of the folder's project or of the home folder."""
    if not message.strip():
        return message
    for template in islice(_list_templates(Path(folder) if folder else None), MOST_FILES):
        arguments = find_arguments(message, template)
        if arguments is not None:
            return arguments
    return message


def _list_templates(folder: Path | None) -> Iterator[str]:
    home = Path.home()
    above = [folder, *folder.parents][:MOST_PARENTS] if folder is not None and folder.is_absolute() else []
    for root in dict.fromkeys([*above, home]):
        for name in (*FOLDERS, *(OF_HOME if root == home else ())):
            yield from _read_folder(root / name)
        for name in SETTINGS:
            yield from _read_settings(_read_file(root / name))


def _read_folder(folder: Path) -> Iterator[str]:
    """Yield the templates in a folder and its subfolders."""
    for path, _, names in os.walk(folder):
        for name in sorted(names):
            if name.endswith(SUFFIXES):
                yield _read_template(name, _read_file(Path(path) / name))


def _read_file(file: Path) -> str:
    """Return the start of a file; empty if it is no file that can be read."""
    try:
        # A pipe or a device would block its reader.
        if not stat.S_ISREG(file.stat().st_mode):
            return ""
        with file.open("rb") as data:
            return data.read(LARGEST_FILE).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def _read_template(name: str, text: str) -> str:
    if name.endswith(".toml"):
        try:
            return str(tomllib.loads(text).get("prompt", ""))
        except (tomllib.TOMLDecodeError, RecursionError):
            return ""
    head, fence, body = text.removeprefix("\ufeff").partition(f"\n{_FENCE}")
    return body.partition("\n")[2] if fence and head.startswith(_FENCE) else text


def _read_settings(text: str) -> Iterator[str]:
    try:
        commands = json.loads(text).get("command") if text else None
    except (ValueError, AttributeError, RecursionError):
        return
    for command in commands.values() if isinstance(commands, dict) else ():
        if isinstance(command, dict) and isinstance(command.get("template"), str):
            yield command["template"]
