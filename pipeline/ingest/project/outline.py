"""What a source file holds: its purpose, its symbols, its imports."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

LONGEST_SIGNATURE: Final = 120
LONGEST_VALUE: Final = 60
LONGEST_ATTRIBUTE: Final = 80
SHOWN_PARAMETERS: Final = 8


class Role(StrEnum):
    """What a symbol is told as."""

    DEFINITION = "definition"
    CONSTANT = "constant"
    TEST = "test"


@dataclass(frozen=True, slots=True)
class Symbol:
    """A named piece of a file: how it is written without its body, where it begins (1-based), what it says of itself.

    `name` is dotted for a member; `fields` are the names of what it holds.
    """

    name: str
    signature: str
    line: int
    doc: str = ""
    public: bool = True
    role: Role = Role.DEFINITION
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Import:
    """A module as a file writes it, and the names taken from it where one of them may be a module, too."""

    module: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outline:
    """A file's purpose in a line or "", its symbols in order, its imports in order."""

    purpose: str
    symbols: tuple[Symbol, ...]
    imports: tuple[Import, ...]


def one_line(text: str) -> str:
    """Return a text with single spaces only, and none inside round brackets that stood on lines of their own."""
    return " ".join(text.split()).replace("( ", "(").replace(" )", ")").replace(",)", ")")


def callable_signature(name: str, parameters: Sequence[str], names: Sequence[str], result: str = "") -> str:
    """Write a callable in full where that is short, else by the names of its parameters."""
    full = one_line(f"{name}({', '.join(parameters)}){result}")
    if len(full) <= LONGEST_SIGNATURE:
        return full
    shown = ", ".join(names[:SHOWN_PARAMETERS]) + (", …" if len(names) > SHOWN_PARAMETERS else "")
    brief = one_line(f"{name}({shown}){result}")
    return brief if len(brief) <= LONGEST_SIGNATURE else shortened(f"{name}({shown})", LONGEST_SIGNATURE)


def decoration(attributes: Iterable[str]) -> str:
    """Write the attributes of a symbol before it: whole where they name a route, a command or a case."""
    texts = [one_line(attribute) for attribute in attributes]
    whole = (('"' in one or "'" in one) and len(one) <= LONGEST_ATTRIBUTE for one in texts)
    return "".join(
        f"@{one if all_of_it else one.partition('(')[0]} " for one, all_of_it in zip(texts, whole, strict=True)
    )


def valued(name: str, value: str) -> str:
    """Write a constant with its value where that is short."""
    value = one_line(value)
    return f"{name} = {value}" if value and len(value) <= LONGEST_VALUE else name


def shortened(text: str, limit: int) -> str:
    """Return a text of at most so many characters; one that was cut ends with an ellipsis."""
    return text if len(text) <= limit else f"{text[: limit - 1].rstrip()}…"
