"""Declare settings, and parse their values from files and the environment.

By hand, not by pydantic: every command reads the settings first, and importing pydantic takes longer than everything
else.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

_BOOLEANS = {
    **dict.fromkeys(("1", "true", "t", "yes", "y", "on"), True),
    **dict.fromkeys(("0", "false", "f", "no", "n", "off"), False),
}


class Secret:
    """A text that is masked when it is printed or logged."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text."""
        return self._text

    def __str__(self) -> str:
        return "**********" if self._text else ""

    def __repr__(self) -> str:
        return f"Secret({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


@dataclass(frozen=True)
class Setting:
    """A setting's default, its line of help, and its allowed values."""

    default: Any
    help: str
    least: Any = None
    most: Any = None
    choices: tuple[str, ...] = ()
    pattern: str = ""

    @property
    def type(self) -> type:
        """Return the type of the setting's values."""
        return type(self.default) if not isinstance(self.default, Path) else Path

    def parse(self, raw: object) -> Any:
        """Parse a value from a file or the environment; raise ValueError with the allowed values."""
        value: Any = _READERS[self.type](raw)
        if self.choices and value not in self.choices:
            raise ValueError(f"must be one of {', '.join(self.choices)}")
        if self.pattern and not re.fullmatch(self.pattern, value.reveal() if isinstance(value, Secret) else value):
            raise ValueError(f"must match {self.pattern}")
        # NaN compares with nothing.
        if self.least is not None and not value >= self.least:
            raise ValueError(f"must be at least {self.least:g}")
        if self.most is not None and not value <= self.most:
            raise ValueError(f"must be at most {self.most:g}")
        return value


def declare(default: T, help: str, **takes: Any) -> T:  # noqa: A002 - argparse and click call it `help` too
    """Declare a field of a frozen dataclass to be a setting."""
    declared: T = field(default=default, metadata={"setting": Setting(default, help, **takes)})
    return declared


def list_declared(declaring: type[Any]) -> Mapping[str, Setting]:
    """Return the settings that a dataclass declares, in order of declaration."""
    return {field.name: field.metadata["setting"] for field in fields(declaring)}


def _read_text(raw: object) -> str:
    if not isinstance(raw, str):
        raise ValueError("must be a text")  # noqa: TRY004 - a value like any other that cannot be taken
    return raw


def _read_bool(raw: object) -> bool:
    boolean = _BOOLEANS.get(str(raw).lower()) if isinstance(raw, (bool, int, str)) else None
    if boolean is None:
        raise ValueError("must be true or false")
    return boolean


def _read_int(raw: object) -> int:
    number = _read_float(raw)
    if (isinstance(raw, str) and not re.fullmatch(r"\s*[+-]?[0-9]+\s*", raw)) or not number.is_integer():
        raise ValueError("must be an integer")
    return int(number)


def _read_float(raw: object) -> float:
    if isinstance(raw, bool) or not isinstance(raw, (int, float, str)):
        raise ValueError("must be a number")  # noqa: TRY004 - ditto
    try:
        number = float(raw)
    except (ValueError, OverflowError) as error:
        raise ValueError("must be a number") from error
    if not math.isfinite(number):
        raise ValueError("must be a number")
    return number


_READERS: Mapping[type, Callable[[object], object]] = {
    str: _read_text,
    bool: _read_bool,
    int: _read_int,
    float: _read_float,
    Path: lambda raw: raw if isinstance(raw, Path) else Path(_read_text(raw)),
    Secret: lambda raw: Secret(_read_text(raw)),
}
