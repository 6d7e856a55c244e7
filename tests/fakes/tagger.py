"""A tagger that needs no model: what follows a preposition and is capitalised is a name."""

import re
from collections.abc import Sequence

from pipeline.kernel.records import EntityKind
from pipeline.kernel.records.digestion import EntityMention
from pipeline.text.names import canonical_entity_name

_KINDS = {
    "with": EntityKind.PERSON,
    "at": EntityKind.ORGANISATION,
    "near": EntityKind.PLACE,
    "bought": EntityKind.PRODUCT,
    "since": EntityKind.DATE,
}
_NAMED = re.compile(r"\b(with|at|near|bought|since) ((?:[A-Z0-9][\w']*+)(?: [A-Z0-9][\w']*+)*)")


class FakeTagger:
    """Tags "with Ada Byron" a person, "at Acme" an organisation, and so on; keeps its batches."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def tag(self, texts: Sequence[str]) -> list[list[EntityMention]]:
        """Tag a batch: one list per text."""
        self.batches.append(list(texts))
        return [[_mention(found) for found in _NAMED.finditer(text)] for text in texts]


def _mention(found: re.Match[str]) -> EntityMention:
    kind = _KINDS[found[1]]
    return EntityMention(kind, canonical_entity_name(kind, found[2]), found[2], *found.span(2))
