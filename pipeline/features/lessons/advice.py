"""Find lessons that name the command or file that an agent uses or is asked to use."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from pathlib import PurePath
from sqlite3 import Connection

from pipeline.kernel.kinds import render_text
from pipeline.kernel.records import Memory, Trust, Viewer
from pipeline.kernel.store import impressions
from pipeline.kernel.store.agent_sessions import Action, ActionType
from pipeline.text.command_lines import Invocation, list_invocations, list_patch_files
from pipeline.text.lexicon import load_lexicon
from pipeline.write.tool_actions import does_more_than_read

# Maximum number of newest lessons to search.
LOOKED_AT = 500
# Number of first and of last commands to search for in a long command line.
MOST_COMMANDS = 12
MOST_FILES = 24
MOST_CODES = 100
# Number of targets that are kept as they were read: each lesson is compared with the same one.
KEPT = 64
SHORTEST_NAME = 4
SHORTEST_PROGRAM = 3
_WORD = re.compile(r"[\w./:@+-]+")
_CODE = re.compile(r"`([^`\n]{1,200})`")
_IS_FILE = re.compile(r"\w\.[a-z]\w{0,4}$")
# Words of a command that identify nothing alone.
_GLUE = frozenset({"sudo", "run", "exec", "env", "bash", "sh", "python", "python3", "node", "npx", "uv", "poetry"})
_PATCH_PROGRAMS = frozenset({"apply_patch", "applypatch", "patch"})
# Programs whose names are ordinary words, and programs with so many functions that their names identify no action.
ORDINARY = frozenset(load_lexicon("command_lines").words("ordinary"))
MANIFOLD = frozenset(load_lexicon("command_lines").words("manifold"))


@dataclass(frozen=True, slots=True)
class Touched:
    """The targets of an action in a searchable form: names of files, and the words of each command."""

    files: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]

    @property
    def words(self) -> list[str]:
        """Return the most specific words; a text that names the target contains at least one of them."""
        return list(dict.fromkeys([*self.files, *(word for word in map(_find_telling_word, self.commands) if word)]))


@lru_cache(KEPT)
def read_touched(action_type: ActionType, target: str) -> Touched:
    """Parse an action's target, a file or a command line."""
    if action_type is ActionType.EDIT:
        return Touched((PurePath(target.casefold()).name,), ())
    parts = [_read_words(invocation) for invocation in list_invocations(target) if does_more_than_read(invocation)]
    files = [PurePath(word).name for wraps, part in parts if not wraps for word in part[1:] if _is_file(word)]
    ends = parts[:MOST_COMMANDS] + parts[MOST_COMMANDS:][-MOST_COMMANDS:]
    named = [_drop_glue([part[0], *(word for word in part[1:] if not _is_file(word))]) for _, part in ends if part]
    return Touched(tuple(files[:MOST_FILES]), tuple(tuple(command) for command in named if command))


def _read_words(invocation: Invocation) -> tuple[bool, list[str]]:
    """Return whether a command runs another one, and its words without quoted texts."""
    words = [found for word in invocation.words if " " not in word for found in _WORD.findall(word.casefold())]
    words += [word.casefold() for word in (*invocation.files, *_list_patched(invocation))]
    return invocation.is_wrapper, words


def _list_patched(invocation: Invocation) -> list[str]:
    """Return the files of a patch that a command reads from its standard input or as its argument."""
    if invocation.words[0] not in _PATCH_PROGRAMS and invocation.words[:2] != ("git", "apply"):
        return []
    return [file for text in (invocation.script, *invocation.words[1:]) for file in list_patch_files(text)]


def read_message(message: str) -> Touched:
    """Parse the targets in a message: files, commands written as code, and in prose a program with its subcommand."""
    lowered = message.casefold()
    words = [word.rstrip(".:-") for word in _WORD.findall(lowered)]
    files = tuple(PurePath(word).name for word in words if _IS_FILE.search(word))
    spoken = tuple(pair for pair in pairwise(words) if pair[0] in MANIFOLD)
    # A pasted log may quote thousands of commands.
    codes = (code[1] for code in islice(_CODE.finditer(lowered), MOST_CODES))
    written = (read_touched(ActionType.COMMAND, code) for code in codes)
    return _join([Touched(files, spoken), *written])


def read_actions(did: Iterable[Action]) -> Touched:
    """Parse the targets of actions."""
    return _join(read_touched(action.type, action.target) for action in did)


def lessons_about(db: Connection, touched: Touched, viewer: Viewer, limit: int) -> list[Memory]:
    """List the confirmed lessons that name one of the targets, most important first."""
    if not touched.words:
        return []
    found = [
        lesson
        for lesson in impressions.list_lessons_mentioning(db, viewer, touched.words, LOOKED_AT)
        if lesson.trust is Trust.TRUSTED and not lesson.instructs and names(lesson, touched)
    ]
    return sorted(found, key=lambda lesson: (-lesson.importance, -lesson.seq))[:limit]


def names(lesson: Memory, touched: Touched) -> bool:
    """Return whether a lesson names one of the targets, in its text or by its anchor."""
    if lesson.anchor is not None and PurePath(lesson.anchor.path.casefold()).name in touched.files:
        return True
    return text_names(render_text(lesson), touched)


def text_names(text: str, touched: Touched) -> bool:
    """Return whether a text names one of the targets."""
    lowered = text.casefold()
    if any(
        len(name) >= SHORTEST_NAME
        and name in lowered
        and re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", lowered) is not None
        for name in touched.files
    ):
        return True
    if not any(command[0] in lowered for command in touched.commands):
        return False
    words = _drop_glue(_WORD.findall(lowered))
    neighbours = set(pairwise(words))
    return any(_is_named(command, words, neighbours) for command in touched.commands)


def _join(parts: Iterable[Touched]) -> Touched:
    found = list(parts)
    files = dict.fromkeys(file for part in found for file in part.files)
    commands = dict.fromkeys(command for part in found for command in part.commands)
    return Touched(tuple(files)[:MOST_FILES], tuple(commands)[:MOST_COMMANDS])


def _drop_glue(words: Sequence[str]) -> list[str]:
    """Return the words without flags, filler words and final punctuation."""
    plain = (word.rstrip(".:-") for word in words if not word.startswith("-"))
    return [word for word in plain if word and word not in _GLUE]


def _is_named(command: Sequence[str], words: Sequence[str], neighbours: set[tuple[str, str]]) -> bool:
    # Only the program and its subcommand; the arguments after them may mean anything.
    if len(command) > 1 and (command[0], command[1]) in neighbours:
        return True
    if not command or len(command[0]) < SHORTEST_PROGRAM or command[0] not in words:
        return False
    return command[0] not in ORDINARY and (len(command) == 1 or command[0] not in MANIFOLD)


def _find_telling_word(command: Sequence[str]) -> str | None:
    """Return the word that a text must contain to name a command; None if no text can name it."""
    common = command[0] in ORDINARY or len(command[0]) < SHORTEST_PROGRAM
    if len(command) == 1:
        return None if common else command[0]
    return command[1] if common or command[0] in MANIFOLD else command[0]


def _is_file(word: str) -> bool:
    return "/" in word or _IS_FILE.search(word) is not None
