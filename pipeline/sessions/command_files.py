"""Leave out of a prompt what a command file says: whoever wrote the file speaks there, not the person."""

import json
import os
import re
import stat
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path

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
_FIRST_NAMES = frozenset(name.partition("/")[0] for name in (*FOLDERS, *OF_HOME, *SETTINGS))
SUFFIXES = (".md", ".toml")
MOST_FILES = 200
LARGEST_FILE = 1 << 16
MOST_PARENTS = 12
_FENCE = "---"
# Where a host puts arguments, the output of a program, or a file.
_PLACEHOLDER = re.compile(r"\$ARGUMENTS(?:\[\d+\])?|\$\{[@\d][^}\s]*\}|\$[@\d]|\{\{\w+\}\}|!`[^`\n]*`|[!@]\{[^}\n]*\}")
_FILLED_BY_HOST = ("!", "@")
# Shorter templates say too little to recognize them.
SHORTEST_TEMPLATE = 12
# A template's lines may be left out or filled with text of other lines.
LINES_AHEAD = 50
# A host may write a title before the template.
MOST_LINES_BEFORE = 3


def drop_command_text(message: str, templates: Iterable[str]) -> str:
    """Return a prompt without the text of a command file that has one of some templates."""
    for template in templates if message.strip() else ():
        arguments = find_arguments(message, template)
        if arguments is not None:
            return arguments
    return message


def list_templates(folder: str) -> tuple[str, ...]:
    """Return the templates of the command files of a folder's project and of the home folder."""
    return tuple(islice(_find_templates(Path(folder) if folder else None), MOST_FILES))


def _find_templates(folder: Path | None) -> Iterator[str]:
    home = Path.home()
    above = [folder, *folder.parents][:MOST_PARENTS] if folder is not None and folder.is_absolute() else []
    for root in dict.fromkeys([*above, home]):
        # At each prompt, and nearly all are missing: pathlib and a walk take several times as long.
        start, first = f"{root}/", _FIRST_NAMES
        # A folder that cannot be listed may still be entered.
        with suppress(OSError):
            first = _list_first_names(start, os.stat(start).st_mtime_ns)  # noqa: PTH116
        for name in (*FOLDERS, *(OF_HOME if root == home else ())):
            if name.partition("/")[0] in first and os.path.isdir(start + name):  # noqa: PTH112
                yield from _read_folder(start + name)
        for name in SETTINGS:
            if name.partition("/")[0] in first and os.path.exists(start + name):  # noqa: PTH110
                yield from _read_settings(_read_file(root / name))


@lru_cache(256)
def _list_first_names(root: str, _changed_at: int) -> frozenset[str]:
    """Return the names in a folder with which the path of a command file may begin."""
    return _FIRST_NAMES.intersection(os.listdir(root))  # noqa: PTH208


def _read_folder(folder: str) -> Iterator[str]:
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


def find_arguments(message: str, template: str) -> str | None:
    """Return the words of a message that a template does not contain; None if the message was not made of it."""
    expected, lines = _list_lines(template), _list_lines(message)
    if not expected or sum(len(_PLACEHOLDER.sub("", line).strip()) for line in expected) < SHORTEST_TEMPLATE:
        return None
    starts = range(min(len(lines), MOST_LINES_BEFORE + 1))
    start = next((number for number in starts if _match_line(lines[number], expected[0]) is not None), None)
    if start is None:
        return None
    arguments, position, matched, is_filled = [], 0, 0, False
    for line in lines[start:]:
        found = _find_line(line, expected, position)
        if found is not None:
            position, own = found
            matched += 1
            is_filled = any(mark.startswith(_FILLED_BY_HOST) for mark in _PLACEHOLDER.findall(expected[position - 1]))
            arguments += own
        elif not is_filled or position == len(expected):
            arguments.append(line)
    return "\n".join(arguments) if matched * 2 > len(expected) else None


def _list_lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _find_line(line: str, expected: Sequence[str], position: int) -> tuple[int, list[str]] | None:
    """Return the position after the next line of a template that a line was made of, and its arguments."""
    for number in range(position, min(len(expected), position + LINES_AHEAD)):
        arguments = _match_line(line, expected[number])
        if arguments is not None:
            return number + 1, arguments
    return None


def _match_line(line: str, expected: str) -> list[str] | None:
    """Return the arguments in a line that was made of a template's line, None for another line."""
    if line == expected:
        return [] if not _PLACEHOLDER.search(line) else None
    marks = _PLACEHOLDER.findall(expected)
    return _fill(line, _PLACEHOLDER.split(expected), marks) if marks else None


def _fill(line: str, texts: list[str], marks: list[str]) -> list[str] | None:
    first, last = texts[0].rstrip(), texts[-1].lstrip()
    if not line.startswith(first) or not line.endswith(last) or len(line) < len(first) + len(last):
        return None
    spots, position, end = [], len(first), len(line) - len(last)
    for text in texts[1:-1]:
        found = line.find(text, position, end)
        if found < 0:
            return None
        spots.append((position, found))
        position = found + len(text)
    spots.append((position, end))
    filled = zip(spots, marks, strict=True)
    return [own for (a, b), mark in filled if not mark.startswith(_FILLED_BY_HOST) and (own := line[a:b].strip())]
