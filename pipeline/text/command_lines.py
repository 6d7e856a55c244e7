"""Read command lines: the programs that they run, also those behind wrappers such as sudo, ssh and `bash -c`."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import islice

from pipeline.text.lexicon import load_lexicon

# Maximum number of wrappers around a command, of characters, and of commands in a line.
DEEPEST = 8
READ_CHARS = 8000
# Number of lines that are kept as they were read: each critical lesson reads the same line.
KEPT = 8
MOST_COMMANDS = 60
_OPERATORS = ";|&()\n"
_OUTPUT = re.compile(r"\d*+>&\d?|&>+")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=.*", re.DOTALL)
_SHORT_SCRIPT = re.compile(r"-[A-Za-z]+")
_SHORT_GROUP = re.compile(r"-[A-Za-z]{1,6}")
_VERSION = re.compile(r"(?<=[a-z])\d[\d.]*$")
# The name under which a branch that a line checks out is one of its settings.
HEAD = "HEAD"
# Commands that set a place for the commands after them in the same line.
_EXPORTS = frozenset({"export", "source", ".", "set", "setx", "declare"})
_SELECTS = frozenset({"checkout", "switch", "use", "use-context", "select", "set-context"})


@dataclass(frozen=True, slots=True)
class Invocation:
    """A program with its arguments, and the words around it that say where it runs.

    `settings` are words of wrappers, variables and files of variables; `folders` are changes of the folder before it.
    """

    words: tuple[str, ...]
    settings: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    is_wrapper: bool = False


@dataclass(frozen=True, slots=True)
class _Wrapper:
    """What follows the name of a wrapper: its positional arguments and the options with values."""

    path: tuple[str, ...]
    positionals: int
    valued: frozenset[str]
    scripts: frozenset[str]
    is_script: bool


@lru_cache(KEPT)
def list_invocations(line: str) -> tuple[Invocation, ...]:
    """Return the commands of a line; wrappers come before the commands that they run."""
    return tuple(islice(_list_commands(line[:READ_CHARS], (), DEEPEST), MOST_COMMANDS))


def list_flags(invocation: Invocation) -> frozenset[str]:
    """Return the options of a command, short ones also alone and in their long form."""
    words = [word.partition("=")[0] for word in invocation.words[1:] if word.startswith("-")]
    letters = [f"-{letter}" for word in words if _SHORT_GROUP.fullmatch(word) for letter in word[1:]]
    return frozenset(words) | {name for flag in [*words, *letters] for name in name_flag(invocation.words, flag)}


def name_flag(words: Sequence[str], flag: str) -> frozenset[str]:
    """Return the names of an option of a command: itself, and the long form of a short one."""
    long = {
        long
        for command, options in _load_short_options().items()
        if words[0] == command[0] and all(word in words for word in command)
        for short, long in options
        if short == flag
    }
    return frozenset({flag} | long)


def list_arguments(invocation: Invocation) -> list[tuple[str, bool]]:
    """Return the arguments of a command that are no options, and whether each may be the value of an option."""
    valued = _load_global_options().get(invocation.words[0], frozenset())
    arguments = []
    before = ""
    for word in invocation.words[1:]:
        if not word.startswith("-") and before not in valued:
            arguments.append((word, before.startswith("-") and "=" not in before))
        before = word
    return arguments


def _list_commands(line: str, settings: tuple[str, ...], depth: int) -> Iterator[Invocation]:
    folders: tuple[str, ...] = ()
    for words in _split_commands(line):
        for level in _unwrap(words, settings, depth):
            yield replace(level, folders=folders + level.folders)
        settings += _read_settings(words)
        if words[0] in ("cd", "pushd"):
            folders += tuple(words[1:])


def _split_commands(line: str) -> Iterator[list[str]]:
    words: list[str] = []
    for word in _tokenize(line):
        if not set(word) <= set(_OPERATORS):
            words.append(word)
        elif words:
            yield words
            words = []
    if words:
        yield words


def _tokenize(line: str) -> list[str]:
    plain = _OUTPUT.sub(" ", line.replace("\\\n", " ")).replace("`", " ; ")
    for text in (plain, plain.replace('"', " ").replace("'", " ").replace("\\", " ")):
        # An unclosed quotation is none.
        lexer = shlex.shlex(text, posix=True, punctuation_chars=_OPERATORS)
        lexer.whitespace, lexer.commenters, lexer.whitespace_split = " \t\r", "", True
        try:
            return [word for word in lexer if word]
        except ValueError:
            continue
    return []


def _read_settings(words: Sequence[str]) -> tuple[str, ...]:
    """Return what a command sets for the commands after it."""
    if words[0] in _EXPORTS or all(map(_ASSIGNMENT.fullmatch, words)):
        return tuple(words)
    chosen = next((number for number, word in enumerate(words[1:4], 1) if word in _SELECTS), None)
    named = [] if chosen is None else [word for word in words[chosen + 1 :] if not word.startswith("-")]
    return tuple([f"{HEAD}={named[0]}"] if named and words[0] == "git" else named)


def _unwrap(words: Sequence[str], settings: tuple[str, ...], depth: int) -> Iterator[Invocation]:
    while words and (_ASSIGNMENT.fullmatch(words[0]) or words[0] in ("!", "$", "{")):
        settings += (words[0],)
        words = words[1:]
    if not words:
        return
    program = words[0].rsplit("/", 1)[-1].casefold() or words[0]
    inner = _find_inner(_VERSION.sub("", program), words[1:]) if depth else None
    yield Invocation((program, *words[1:]), settings, is_wrapper=inner is not None)
    if inner is None:
        return
    skipped, command = inner
    settings += tuple(skipped)
    if isinstance(command, str):
        yield from _list_commands(command, settings, depth - 1)
    else:
        yield from _unwrap(command, settings, depth - 1)


def _find_inner(program: str, arguments: Sequence[str]) -> tuple[list[str], Sequence[str] | str] | None:
    """Return the words of a wrapper, and the words or the line of the command that it runs; None for no wrapper."""
    for wrapper in _load_wrappers().get(program, ()):
        inner = _apply(wrapper, arguments)
        if inner is not None and _runs_package(program, wrapper, inner[1]):
            return inner
    return None


def _apply(wrapper: _Wrapper, arguments: Sequence[str]) -> tuple[list[str], Sequence[str] | str] | None:
    path, left, at = list(wrapper.path), wrapper.positionals, 0
    while at < len(arguments):
        word = arguments[at]
        name, _, value = word.partition("=")
        if word == "--" and not path:
            at += 1
            # The positional arguments may be before or after it.
            if not left:
                break
        elif word.startswith("-") and len(word) > 1:
            if name in wrapper.scripts or _is_short_script(word, wrapper):
                # All words that follow: a shell before this one removes quotation marks (`ssh host bash -c 'a b'`).
                script = value or " ".join(arguments[at + 1 :])
                return [*arguments[:at], *arguments[at + 2 :]], script
            at += 2 if word in wrapper.valued else 1
        elif path:
            if word.casefold() != path.pop(0):
                return None
            at += 1
        elif left:
            left -= 1
            at += 1
        else:
            break
    command = arguments[at:]
    if path or not command:
        return None
    return list(arguments[:at]), " ".join(command) if wrapper.is_script else command


def _is_short_script(word: str, wrapper: _Wrapper) -> bool:
    """Return whether a word is a group of short options that ends with one whose value is a script, as `-lc`."""
    return _SHORT_SCRIPT.fullmatch(word) is not None and f"-{word[-1]}" in wrapper.scripts


def _runs_package(program: str, wrapper: _Wrapper, command: Sequence[str] | str) -> bool:
    """Return whether a package manager without a subcommand of its own runs a script or binary of a package."""
    own = _load_own_commands().get(program)
    return own is None or bool(wrapper.path) or command[0] not in own


@cache
def _load_wrappers() -> dict[str, tuple[_Wrapper, ...]]:
    found: dict[str, list[_Wrapper]] = {}
    table = load_lexicon("command_lines").table("wrappers")
    for name in table.entries:
        program, *path = name.split()
        words = table.words(name)
        scripts = frozenset(word.removeprefix("script:") for word in words if word.startswith("script:"))
        valued = frozenset(word for word in words if word.startswith("-"))
        positionals = sum(int(word) for word in words if word.isdecimal())
        found.setdefault(program, []).append(_Wrapper(tuple(path), positionals, valued, scripts, "script" in words))
    # The longest path first: `docker compose exec` before `docker exec`.
    return {program: tuple(sorted(made, key=lambda made: -len(made.path))) for program, made in found.items()}


@cache
def _load_short_options() -> dict[tuple[str, ...], tuple[tuple[str, str], ...]]:
    table = load_lexicon("command_lines").table("short_options")
    pairs = {command: [word.split("=") for word in table.words(command)] for command in table.entries}
    return {tuple(command.split()): tuple((short, long) for short, long in found) for command, found in pairs.items()}


@cache
def _load_global_options() -> dict[str, frozenset[str]]:
    table = load_lexicon("command_lines").table("global_options")
    return {program: frozenset(table.words(program)) for program in table.entries}


@cache
def _load_own_commands() -> dict[str, frozenset[str]]:
    table = load_lexicon("command_lines").table("own_commands")
    return {program: frozenset(table.words(program)) for program in table.entries}
