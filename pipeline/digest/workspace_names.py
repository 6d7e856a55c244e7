"""Find the names that a workspace already has, and the names in languages that the tagger does not support."""

import re
from collections.abc import Iterable, Iterator, Mapping, Set as AbstractSet

from pipeline.records import EntityKind
from pipeline.records.digestion import EntityMention
from pipeline.text.capitalized_names import find_capitalized_names
from pipeline.text.component_names import find_hyphenated_names, find_hyphenated_words
from pipeline.text.known_names import needs_cue

_WORD = re.compile(r"[^\W_]\w*")


def list_capitalized(texts: Iterable[str]) -> set[str]:
    """Return the capitalized words of some texts, folded."""
    return {word.casefold() for text in texts for word in _WORD.findall(text) if word[0].isupper()}


def list_hyphenated(texts: Iterable[str]) -> set[str]:
    """Return the hyphenated words of some texts."""
    return {word for text in texts for word in find_hyphenated_words(text)}


def find_workspace_names(
    text: str, products: AbstractSet[str], names: Mapping[str, EntityKind]
) -> Iterator[EntityMention]:
    """Yield the mentions of the workspace's own products, by canonical name, and of its hyphenated names."""
    for match in _WORD.finditer(text) if products else ():
        # An ambiguous name needs its cue each time: "Go to the top".
        if match[0][0].isupper() and match[0].casefold() in products and not needs_cue(match[0]):
            yield EntityMention(EntityKind.PRODUCT, match[0].casefold(), match[0], *match.span())
    for kind, start, end in find_hyphenated_names(text, names):
        yield EntityMention(kind, text[start:end], text[start:end], start, end)


def find_untagged_names(text: str) -> list[EntityMention]:
    """Find the names in a text that the tagger does not support; their kinds depend on the context."""
    return [
        EntityMention(EntityKind.PERSON, text[start:end], text[start:end], start, end)
        for start, end in find_capitalized_names(text)
    ]
