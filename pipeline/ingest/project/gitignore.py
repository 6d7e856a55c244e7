"""Which names a repository's own rules leave out, decided as git decides.

pathspec reads the shape of a pattern: what `/`, `*`, `?` and `**` mean. Of everything else it is shown the place only,
since it reads brackets, escapes and spaces otherwise than git does. A name is judged by itself alone, since whoever
walks does not enter a folder that is left out. Text is bytes read as Latin-1, as git compares bytes.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Final

from pathspec.patterns.gitignore.base import GitIgnorePatternError
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

# Stands for what pathspec is not shown. No file has it in its name.
_HELD: Final = "\0"
_STARS: Final = "[^/]*"
_NO_CHARACTER: Final = "(?!)"
_ANY_CHARACTER: Final = "[^/]"
_LONG_STARS: Final = re.compile(r"\*{3,}")
_CLASSES: Final = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"\x21-\x7e",
    "lower": "a-z",
    "print": r"\x20-\x7e",
    "punct": r"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    "space": r" \t-\r",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One line: whether it leaves out or takes back, names a folder only, looks at the name only or at the path."""

    pattern: re.Pattern[str]
    leaves_out: bool
    only_folders: bool
    by_name: bool


@dataclass(frozen=True, slots=True)
class Level:
    """The rules of one file, and how many characters of a path lead to the folder that they stand in."""

    rules: tuple[Rule, ...]
    start: int = 0


def comparable(name: str) -> str:
    """Return a file's name as the rules see it: a character for each byte."""
    return name if name.isascii() else name.encode("utf-8", "surrogateescape").decode("latin-1")


def read_rules(data: bytes) -> tuple[Rule, ...]:
    """Return the rules of a `.gitignore`, the last, which decides first, in front."""
    lines = data.removeprefix(b"\xef\xbb\xbf").decode("latin-1").split("\n")
    return tuple(rule for line in reversed(lines) if (rule := _rule(line.removesuffix("\r"))) is not None)


def is_left_out(path: str, levels: Sequence[Level], *, is_folder: bool) -> bool:
    """Tell whether the rules, the nearest in front, leave out a comparable path of which no folder is left out."""
    name = path.rpartition("/")[2]
    for level in levels:
        below = path[level.start :]
        for rule in level.rules:
            if (is_folder or not rule.only_folders) and _names(rule, name if rule.by_name else below):
                return rule.leaves_out
    return False


def _names(rule: Rule, text: str) -> bool:
    found = rule.pattern.search(text)
    # pathspec marks where it found not the text itself but a folder above it.
    return found is not None and found.groupdict().get("ps_d") is None


def _rule(line: str) -> Rule | None:
    """Return what a line says, None for what git passes over or for what names nothing."""
    body = _without_trailing_spaces(line)
    if body.startswith("#") or _HELD in body:
        return None
    leaves_out = not body.startswith("!")
    body = body.removeprefix("!")
    only_folders = body.endswith("/")
    body = body.removesuffix("/")
    held = None if body.endswith("/") else _hold_back(body)
    if not body or held is None:
        return None
    shown, kept = held
    by_name = "/" not in body
    # A slash within brackets anchors, too.
    anchored = shown if by_name or shown.startswith("/") else f"/{shown}"
    try:
        regex, _ = GitIgnoreSpecPattern.pattern_to_regex(_LONG_STARS.sub("**", anchored))
    except GitIgnorePatternError:
        return None
    if regex is None:
        return None
    return Rule(_compiled(regex, kept), leaves_out, only_folders, by_name)


def _without_trailing_spaces(line: str) -> str:
    bare = line.rstrip(" ")
    escapes = len(bare) - len(bare.rstrip("\\"))
    return f"{bare} " if escapes % 2 and len(bare) < len(line) else bare


def _hold_back(body: str) -> tuple[str, list[str]] | None:
    """Return a pattern with placeholders and the expression for each; None when it can match nothing."""
    shown: list[str] = []
    kept: list[str] = []
    at = 0
    while at < len(body):
        character = body[at]
        expression, end = re.escape(character), at + 1
        if character == "[":
            expression, end = _bracket(body, at)
        elif character == "\\":
            expression, end = re.escape(body[at + 1 : at + 2]), at + 2
        if not expression:
            return None
        plain = character in "*?/"
        shown.append(character if plain else _HELD)
        kept += [] if plain else [expression]
        at = end
    return "".join(shown), kept


def _bracket(body: str, at: int) -> tuple[str, int]:
    """Return the expression for the bracket that opens at a place, and where it ends; "" for one that is none."""
    at += 1
    negated = body[at : at + 1] in ("!", "^")
    at += negated
    first, ranges, before = at, list[str](), ""
    while body[at : at + 1] != "]" or at == first:
        item = _bracket_item(body, at, before)
        if item is None:
            return "", at
        expression, before, at = item
        ranges.append(expression)
    inside = "".join(ranges)
    if not inside:
        return (_ANY_CHARACTER if negated else _NO_CHARACTER), at + 1
    return f"(?!/)[{'^' if negated else ''}{inside}]", at + 1


def _bracket_item(body: str, at: int, before: str) -> tuple[str, str, int] | None:
    """Return what stands at a place of a bracket, the character from which a range may lead on, and the next place."""
    character, following = body[at : at + 1], body[at + 1 : at + 2]
    if character == "-" and before and following not in ("", "]"):
        at += 1 + (following == "\\")
        last = body[at : at + 1]
        if not last:
            return None
        return (f"{re.escape(before)}-{re.escape(last)}" if before <= last else ""), "", at + 1
    if character == "[" and following == ":":
        end = body.find("]", at + 2)
        if end < 0:
            return None
        if end > at + 2 and body[end - 1] == ":":
            members = _CLASSES.get(body[at + 2 : end - 1])
            return None if members is None else (members, "", end + 1)
    if character == "\\":
        at, character = at + 1, following
    return (re.escape(character), character, at + 1) if character else None


def _compiled(regex: str, kept: Sequence[str]) -> re.Pattern[str]:
    return re.compile("".join(_filled(_linear(regex), kept)).replace("$)", r"\Z)"), re.DOTALL)


def _linear(regex: str) -> str:
    """Let each `*` take the nearest place where what follows it stands: many in a row then cost no more than one."""
    head, *pieces = regex.split(_STARS)
    if not pieces:
        return regex
    *middle, last = pieces
    nearest = (f"{_STARS}{piece}" if ".+" in piece else f"(?>{_STARS}?{piece})" for piece in middle)
    return "".join([head, *nearest, _STARS, last])


def _filled(regex: str, kept: Sequence[str]) -> Iterator[str]:
    return chain.from_iterable(zip_longest(regex.split(_HELD), kept, fillvalue=""))
