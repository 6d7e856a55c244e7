"""The rules' word lists as data: one TOML file per topic.

A list is a TOML array, or a string of words separated by white space.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The lists of a topic."""

    entries: Mapping[str, Any]

    def words(self, name: str) -> tuple[str, ...]:
        """Return a list's entries in order."""
        entry = self.entries[name]
        return tuple(entry.split() if isinstance(entry, str) else entry)

    def alternatives(self, name: str) -> str:
        """Return a list of expressions as alternatives of one expression, without brackets."""
        return "|".join(self.words(name))

    def table(self, name: str) -> "Lexicon":
        """Return the lists of a sub-table."""
        return Lexicon(self.entries[name])


@cache
def word_sets(path: str) -> dict[str, frozenset[str]]:
    """Return the lists of a table as sets; the path is a topic, or a topic and a sub-table: `messages.follow_up`."""
    topic, _, table = path.partition(".")
    lexicon = load_lexicon(topic).table(table) if table else load_lexicon(topic)
    return {
        name: frozenset(lexicon.words(name)) for name, entry in lexicon.entries.items() if isinstance(entry, str | list)
    }


def word_set(path: str, name: str) -> frozenset[str]:
    """Return a list as a set."""
    return word_sets(path)[name]


@cache
def load_lexicon(name: str) -> Lexicon:
    """Load the lists of a topic, once."""
    with Path(__file__).with_name(f"{name}.toml").open("rb") as file:
        return Lexicon(tomllib.load(file))
