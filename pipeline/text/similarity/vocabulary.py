"""The closed word lists for comparing two texts, from `lexicon/similarity.toml`."""

from collections.abc import Iterable, Mapping
from typing import Final

from pipeline.text.lexicon import load_lexicon, word_sets

_LEXICON: Final = load_lexicon("similarity")


# The lists that are only asked whether they contain a word, by their names.
WORDS: Final = word_sets("similarity")


def _forms(name: str) -> dict[str, str]:
    """Map each form of a table to its head."""
    return {form: head for head, forms in _LEXICON.entries[name].items() for form in forms.split()}


def _groups(name: str) -> dict[str, str]:
    """Map each word of a list of groups to the first of its group."""
    return {word: group.split()[0] for group in _LEXICON.words(name) for word in group.split()}


def _opposites(name: str) -> Mapping[str, set[str]]:
    table: dict[str, set[str]] = {}
    for left, right in (pair.split("/") for pair in _LEXICON.words(name)):
        table.setdefault(left, set()).add(right)
        table.setdefault(right, set()).add(left)
    return table


def _number_words(name: str, first: int = 0, step: int = 1) -> Iterable[tuple[str, str]]:
    return ((word, str((first + number) * step)) for number, word in enumerate(_LEXICON.words(name)))


CLITICS: Final = {clitic: tuple(words.split()) for clitic, words in _LEXICON.entries["clitics"].items()}
PHRASES: Final = {tuple(phrase.split()): tuple(meant.split()) for phrase, meant in _LEXICON.entries["phrases"].items()}
PHRASE_HEADS: Final = frozenset(phrase[0] for phrase in PHRASES)

PERSONS: Final = _forms("persons")

LINKS: Final = _forms("links")
# Every word that may be dropped from an English text.
SMALL: Final = frozenset(
    {*PERSONS, *LINKS, "any"}.union(*(WORDS[name] for name in ("being", "helping", "auxiliary", "dropped")))
)
COUPLED_WORDS: Final[Mapping[str, str]] = _LEXICON.entries["coupled"]

NEGATIONS: Final = _forms("negations")

NUMBERS: Final[Mapping[str, str]] = {
    **dict(_number_words("numerals")),
    **dict(_number_words("tens", first=3, step=10)),
    **{word: word for word in _LEXICON.words("ordinals")},
    **_LEXICON.entries["numbers"],
}
UNITS: Final = _groups("units")

IRREGULAR: Final = _groups("irregular")

SYNONYMS: Final = _groups("synonyms")
DENYING: Final = _opposites("denying")
DENYING_PREFIXES: Final = _LEXICON.words("denying_prefixes")
DISTINGUISHING: Final = _opposites("distinguishing")


def same_meaning(first: str, second: str) -> bool:
    """Return whether two base forms are equal or listed as synonyms."""
    return first == second or SYNONYMS.get(first, first) == SYNONYMS.get(second, second)


def opposites_of(word: str) -> set[str]:
    """Return the words that change a text's meaning if they replace this one."""
    return contradictions_of(word) | DISTINGUISHING.get(word, set())


def contradictions_of(word: str) -> set[str]:
    """Return the words that contradict this one about the same subject, by list or by prefix ("safe" and "unsafe")."""
    return DENYING.get(word, set()) | toggle_negating_prefix(word)


def toggle_negating_prefix(word: str) -> set[str]:
    """Return the word with a negating prefix added or removed."""
    if len(word) < 4:
        return set()
    bare = {word.removeprefix(prefix) for prefix in DENYING_PREFIXES if len(word) > len(prefix) + 3}
    return {prefix + word for prefix in DENYING_PREFIXES} | bare - {word}
