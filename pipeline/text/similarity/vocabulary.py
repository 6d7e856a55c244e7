"""The closed word lists for comparing two texts, from `lexicon/similarity.toml`."""

from collections.abc import Iterable, Mapping
from typing import Final

from pipeline.text.lexicon import load_lexicon

_LEXICON: Final = load_lexicon("similarity")


def _words(name: str) -> frozenset[str]:
    return frozenset(_LEXICON.words(name))


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


ENGLISH: Final = _words("english")
FOREIGN: Final = _words("foreign")

CLITICS: Final = {clitic: tuple(words.split()) for clitic, words in _LEXICON.entries["clitics"].items()}
PHRASES: Final = {tuple(phrase.split()): tuple(meant.split()) for phrase, meant in _LEXICON.entries["phrases"].items()}
PHRASE_HEADS: Final = frozenset(phrase[0] for phrase in PHRASES)

PERSONS: Final = _forms("persons")
IMPERSONAL: Final = _words("impersonal")

BEING: Final = _words("being")
HELPING: Final = _words("helping")
DOING: Final = _words("doing")
AUXILIARY: Final = _words("auxiliary")
AFTER_AUXILIARY: Final = _words("after_auxiliary")
PAST: Final = _words("past")
DROPPED: Final = _words("dropped")
LINKS: Final = _forms("links")
# Every word that may be dropped from an English text.
SMALL: Final = frozenset({*PERSONS, *BEING, *HELPING, *AUXILIARY, *DROPPED, *LINKS, "any"})
COUPLED_WORDS: Final[Mapping[str, str]] = _LEXICON.entries["coupled"]
SHOUTED: Final = _words("shouted")
MARKERS: Final = _words("markers")

NEGATIONS: Final = _forms("negations")
BESIDE_NEGATION: Final = _words("beside_negation")

NUMBERS: Final[Mapping[str, str]] = {
    **dict(_number_words("numerals")),
    **dict(_number_words("tens", first=3, step=10)),
    **{word: word for word in _LEXICON.words("ordinals")},
    **_LEXICON.entries["numbers"],
}
UNITS: Final = _groups("units")
DAYS: Final = _words("days")
PLACES_OF_WORK: Final = _words("places_of_work")

IRREGULAR: Final = _groups("irregular")
PAST_FORMS: Final = _words("past_forms")
UNINFLECTED: Final = _words("uninflected")
STEMS_WITH_E: Final = _words("stems_with_e")
VERBS_AFTER_A_NAME: Final = _words("verbs_after_a_name")

SYNONYMS: Final = _groups("synonyms")
DENYING: Final = _opposites("denying")
DENYING_PREFIXES: Final = _LEXICON.words("denying_prefixes")
DISTINGUISHING: Final = _opposites("distinguishing")
PREDICATES: Final = _words("predicates")
PREFERRING: Final = _words("preferring")
CONDITIONS: Final = _words("conditions")
STATIVE: Final = _words("stative")
STATIVE_PARTICIPLES: Final = _words("stative_participles")
SINGULAR: Final = _words("singular")
SETTLED: Final = _words("settled")
ONE_VALUED: Final = _words("one_valued")
LABELS: Final = _LEXICON.words("labels")
OPENINGS: Final = _LEXICON.words("openings")
ENDINGS: Final = _LEXICON.words("endings")


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
