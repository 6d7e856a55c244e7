"""Quote untrusted texts for agents: in quotation marks, with their source.

Every text that Reverie did not write passes through this module before an agent reads it, in every field: a title, a
tag or a file name can contain instructions just like a sentence.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.kernel.records import INNER_QUOTES, THE_USER, Trust


def quote(text: str) -> str:
    """Return a text as one quoted line; quotation marks within it are replaced."""
    return f"“{' '.join(text.split()).translate(INNER_QUOTES)}”"


@dataclass(frozen=True, slots=True)
class Speaker:
    """The source of a text, whether it may appear without quotation marks, and the verb that introduces it."""

    source: str
    trusted: bool = False
    verb: str = "noted"

    def say(self, value: Any) -> str:
        """Return a text or a value as one line."""
        text = flatten(value)
        return " ".join(text.split()) if self.trusted else f"{self.source} {self.verb}: {quote(text)}"

    def say_lines(self, text: str) -> str:
        """Return a text with its lines, each in quotation marks unless its source is trusted."""
        if self.trusted:
            return text
        lines = (f"> “{line.translate(INNER_QUOTES)}”" for line in text.splitlines())
        return "\n".join([f"{self.source} {self.verb}:", *lines])


# The source of a name or title that comes from many memories, or that any client may have set.
ANYBODY = Speaker("memories")


def find_speaker(source: str, trust: str | None, *, instructs: bool, said_by: str | None = None) -> Speaker:
    """Return the speaker of a memory's texts; a suspected injection is always quoted, without the person's name."""
    if said_by is not None and trust != Trust.TRUSTED and not instructs:
        return Speaker("the user" if said_by == THE_USER else said_by, verb="said")
    return Speaker(source, trusted=trust == Trust.TRUSTED and not instructs)


def flatten(value: Any) -> str:
    """Return a JSON value as text that a reader understands without its punctuation."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_nest(inner)}" for name, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_nest, value))
    return json.dumps(value)


def _nest(value: Any) -> str:
    text = flatten(value)
    return f"({text})" if isinstance(value, Mapping | list | tuple) else text
