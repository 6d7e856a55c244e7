"""Find the names that a workspace already has, and the names in languages that the tagger does not support."""

import re
from collections.abc import Iterable, Iterator, Mapping, Set as AbstractSet

from pipeline.records import EntityKind
from pipeline.records.digestion import EntityMention
from pipeline.text.component_names import find_hyphenated_names, find_hyphenated_words
from pipeline.text.known_names import needs_cue
from pipeline.text.languages import find_language, is_function_word

_WORD = re.compile(r"[^\W_]\w*")
# English has a tagger; in German every noun has a capital.
_WITHOUT_RULE = frozenset({None, "english", "german"})
_CAPITALIZED = r"[A-ZÀ-ÖØ-ÞŁŠŽČ][\w'’]*[a-zß-öø-ÿšžčłńę](?:-[A-ZÀ-ÖØ-Þ][\w'’]*[^\W\d_])*"
_NAME = re.compile(
    rf"(?<![\w@/.#$&+_-]){_CAPITALIZED}(?: (?:(?:de|del|da|di|du|van) )?{_CAPITALIZED}){{0,2}}(?![\w@/(_-])"
)
_SENTENCE_START = re.compile(r"(?:^|[.!?:\n][ \t\"«¿¡*>-]*)$")


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


def find_capitalized_names(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each name; at the start of a sentence only names of two words."""
    language = find_language(text)
    if language in _WITHOUT_RULE:
        return
    for match in _NAME.finditer(text):
        start, words = match.start(), match[0].split(" ")
        if is_function_word(words[0].lower()) or len(words[0]) < 3:
            start += len(words.pop(0)) + 1
        elif len(words) == 1 and _SENTENCE_START.search(text[max(0, start - 8) : start]):
            continue
        if words and start < match.end():
            yield start, match.end()
