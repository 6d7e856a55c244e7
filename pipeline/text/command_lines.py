"""Read command lines: the programs that they run, also those behind wrappers such as sudo, ssh and `bash -c`."""

import re
from collections.abc import Iterator, Sequence, Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import islice, pairwise

from pipeline.text.lexicon import load_lexicon, word_set, word_sets
from pipeline.text.shell_syntax import split_shell_commands

# Maximum number of wrappers around a command, of characters, and of commands in a line.
DEEPEST = 8
READ_CHARS = 8000
# Number of lines that are kept as they were read: each critical lesson reads the same line.
KEPT = 8
MOST_COMMANDS = 60
SHORTEST_ABBREVIATION = 5
_EXECUTES = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_ALIAS = re.compile(r"alias\.([\w-]+)=(.+)", re.DOTALL)
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
    `files` are those of redirections, `script` is the text of its standard input.
    """

    words: tuple[str, ...]
    settings: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    script: str = ""
    writes: bool = False
    is_wrapper: bool = False


@dataclass(frozen=True, slots=True)
class _Wrapper:
    """What follows the name of a wrapper: its positional arguments and the options with values."""

    path: tuple[str, ...]
    positionals: int
    valued: frozenset[str]
    scripts: frozenset[str]
    is_script: bool
    reads_script: bool


@lru_cache(KEPT)
def list_invocations(line: str) -> tuple[Invocation, ...]:
    """Return the commands of a line; wrappers come before the commands that they run."""
    return tuple(islice(_list_commands(line[:READ_CHARS], (), DEEPEST), MOST_COMMANDS))


@lru_cache(MOST_COMMANDS)
def list_flags(invocation: Invocation) -> frozenset[str]:
    """Return the options of a command, short ones also alone and in their long form."""
    arguments = list(invocation.words[1:])
    if "--" in arguments and invocation.words[0] in word_set("command_lines", "abbreviating"):
        arguments = arguments[: arguments.index("--")]
    words = [word.partition("=")[0] for word in arguments if word.startswith("-")]
    valued = {
        letter
        for command, letters in word_sets("command_lines.valued_letters").items()
        if _runs(invocation.words, command)
        for letter in letters
    }
    letters = [
        f"-{letter}" for word in words if _SHORT_GROUP.fullmatch(word) for letter in _cut_value(word[1:], valued)
    ]
    words += [
        flag
        for command, marks in load_lexicon("command_lines").entries["implied_options"].items()
        if _runs(invocation.words, command)
        for mark, flags in marks.items()
        if any(word == mark or (len(mark) == 1 and word.startswith(mark)) for word in arguments)
        for flag in flags.split()
    ]
    return frozenset(words) | {name for flag in [*words, *letters] for name in name_flag(invocation.words, flag)}


def has_option(invocation: Invocation, option: str) -> bool:
    """Return whether a command has an option, also in another form: `-xdf` for `-fdx`, `--no-ver` for `--no-verify`."""
    name, flags = option.partition("=")[0], list_flags(invocation)
    # Programs in Go accept one dash or two before a long option.
    if (name_flag(invocation.words, name) | {f"-{name}" if len(name) > len("--x") else name}) & flags:
        return True
    if _SHORT_GROUP.fullmatch(name) and all(name_flag(invocation.words, f"-{letter}") & flags for letter in name[1:]):
        return True
    return invocation.words[0] in word_set("command_lines", "abbreviating") and any(
        name.startswith(flag)
        and len(flag) >= SHORTEST_ABBREVIATION
        and flag not in word_set("command_lines", "long_options")
        for flag in flags
    )


def rehearses(invocation: Invocation) -> bool:
    """Return whether a command only shows what it would do, its help or its version."""
    if asks_help(invocation):
        return True
    is_off = any(word.casefold().endswith(("=none", "=false")) for word in invocation.words if "dry" in word)
    return not is_off and any(has_option(invocation, option) for option in word_set("command_lines", "rehearsals"))


def asks_help(invocation: Invocation) -> bool:
    """Return whether a command only shows its help or its version."""
    # After another option, it may be the value of that one.
    asks = any(word == "--help" and not before.startswith("-") for before, word in pairwise(invocation.words))
    return asks or invocation.words[1:] in (("--version",), ("-V",), ("-h",), ("version",))


def _cut_value(letters: str, valued: AbstractSet[str]) -> str:
    """Return the options of a group of letters without the value of the last option: `m` of `-mfix`."""
    end = next((number for number, letter in enumerate(letters) if letter in valued), len(letters))
    return letters[: end + 1]


def _runs(words: Sequence[str], command: str) -> bool:
    first, *others = command.split()
    return words[0] == first and all(word in words for word in others)


def name_flag(words: Sequence[str], flag: str) -> frozenset[str]:
    """Return the names of an option of a command: itself, and the long form of a short one."""
    pairs = (
        option.partition("=")[::2]
        for command, options in word_sets("command_lines.short_options").items()
        if _runs(words, command)
        for option in options
    )
    return frozenset({flag, *(long for short, long in pairs if short == flag)})


def list_arguments(invocation: Invocation) -> list[tuple[str, bool]]:
    """Return the arguments of a command that are no options, and whether each may be the value of an option."""
    valued = word_sets("command_lines.global_options").get(invocation.words[0], frozenset())
    arguments = []
    before = ""
    for word in invocation.words[1:]:
        if not word.startswith("-") and before not in valued:
            arguments.append((word, before.startswith("-") and "=" not in before))
        before = word
    return arguments


def _list_commands(line: str, settings: tuple[str, ...], depth: int) -> Iterator[Invocation]:
    folders: tuple[str, ...] = ()
    for command in split_shell_commands(line, settings):
        words = command.words or ["cat"]
        for level in _unwrap(words, command.script, settings, depth):
            files = () if level.is_wrapper else (*command.outputs, *command.inputs)
            yield replace(
                level, folders=folders + level.folders, files=level.files + files, writes=bool(command.outputs)
            )
        settings += _read_settings(words)
        if words[0] in ("cd", "pushd"):
            folders += tuple(words[1:])


def _read_settings(words: Sequence[str]) -> tuple[str, ...]:
    """Return what a command sets for the commands after it."""
    if words[0] in _EXPORTS or all(map(_ASSIGNMENT.fullmatch, words)):
        return tuple(words)
    chosen = next((number for number, word in enumerate(words[1:4], 1) if word in _SELECTS), None)
    named = [] if chosen is None else [word for word in words[chosen + 1 :] if not word.startswith("-")]
    return tuple([f"{HEAD}={named[0]}"] if named and words[0] == "git" else named)


def _unwrap(words: Sequence[str], script: str, settings: tuple[str, ...], depth: int) -> Iterator[Invocation]:
    while words and (_ASSIGNMENT.fullmatch(words[0]) or words[0] in ("!", "$", "{")):
        settings += (words[0],)
        words = words[1:]
    if not words:
        return
    program = words[0].rsplit("/", 1)[-1].casefold().removesuffix(".exe") or words[0]
    inner = _find_inner(_VERSION.sub("", program), words[1:], script) if depth else None
    yield Invocation((program, *words[1:]), settings, script=script, is_wrapper=inner is not None)
    if inner is None:
        return
    skipped, command = inner
    settings += tuple(skipped)
    if isinstance(command, str):
        yield from _list_commands(command, settings, depth - 1)
    else:
        yield from _unwrap(command, script, settings, depth - 1)


def _find_inner(program: str, arguments: Sequence[str], script: str) -> tuple[list[str], Sequence[str] | str] | None:
    """Return the words of a wrapper, and the words or the line of the command that it runs; None for no wrapper."""
    if program == "find":
        return _find_executed(arguments)
    if program == "git" and (alias := _expand_alias(arguments)) is not None:
        return [], alias
    for wrapper in _load_wrappers().get(program, ()):
        inner = _apply(wrapper, arguments, script)
        # A package manager without a subcommand of its own runs a script or binary of a package.
        own = word_sets("command_lines.own_commands").get(program)
        if inner is not None and (own is None or wrapper.path or inner[1][0] not in own):
            if program == "xargs" and not isinstance(inner[1], str):
                return inner[0], [*inner[1], *script.split()]
            return inner
    return None


def _find_executed(arguments: Sequence[str]) -> tuple[list[str], Sequence[str]] | None:
    """Return the command that `find` runs for each file."""
    at = next((number for number, word in enumerate(arguments) if word in _EXECUTES), None)
    if at is None:
        return None
    command = list(arguments[at + 1 :])
    ends = [number for number, word in enumerate(command) if word in (";", "+")]
    return list(arguments[:at]), command[: ends[0]] if ends else command


def _expand_alias(arguments: Sequence[str]) -> Sequence[str] | str | None:
    """Return the command of git for an alias that the same command defines."""
    for number, (option, value) in enumerate(pairwise(arguments)):
        match = _ALIAS.fullmatch(value) if option == "-c" else None
        if match is None or match[1] not in arguments[number + 2 :]:
            continue
        at = arguments.index(match[1], number + 2)
        others = arguments[at + 1 :]
        if match[2].startswith("!"):
            return " ".join([match[2][1:], *others])
        return ["git", *arguments[:number], *arguments[number + 2 : at], *match[2].split(), *others]
    return None


def _apply(wrapper: _Wrapper, arguments: Sequence[str], script: str) -> tuple[list[str], Sequence[str] | str] | None:
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
            # A group of short options may end with one whose value is a script, as `-lc`.
            option = f"-{word[-1]}" if _SHORT_SCRIPT.fullmatch(word) else name
            if not path and not wrapper.scripts.isdisjoint((name, option)):
                # All words that follow: a shell before this one removes quotation marks (`ssh host bash -c 'a b'`).
                line = value or " ".join(arguments[at + 1 :])
                return [*arguments[:at], *arguments[at + 2 :]], line
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
    return None if path else _find_command(wrapper, arguments[:at], arguments[at:], script)


def _find_command(
    wrapper: _Wrapper, before: Sequence[str], command: Sequence[str], script: str
) -> tuple[list[str], Sequence[str] | str] | None:
    if not command or command[0] in ("-", "/dev/stdin"):
        return (list(before), script) if wrapper.reads_script and script else None
    return list(before), " ".join(command) if wrapper.is_script else command


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
        wrapper = _Wrapper(tuple(path), positionals, valued, scripts, "script" in words, "stdin" in words)
        found.setdefault(program, []).append(wrapper)
    # The longest path first: `docker compose exec` before `docker exec`.
    return {program: tuple(sorted(made, key=lambda made: -len(made.path))) for program, made in found.items()}


# The files that a patch changes

# Maximum number of files that are read from a patch.
MOST_FILES = 200
_FILE = re.compile(
    r"^[^\S\n]*\*\*\* (?:(?:Add|Update|Delete) File|Move to): (?P<named>[^\n]+)$"
    r"|^(?:---|\+\+\+) (?:[ab]/)?(?P<diffed>[^\t\n]+)",
    re.MULTILINE,
)


def list_patch_files(patch: str) -> list[str]:
    """List the files that a patch adds, updates, deletes or moves, in the form of Codex or of diff."""
    files = ((match["named"] or match["diffed"]).strip() for match in _FILE.finditer(patch))
    return list(dict.fromkeys(file for file in files if file and file != "/dev/null"))[:MOST_FILES]
