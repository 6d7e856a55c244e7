"""Search tokens of a text: one analysis for memories and queries.

Identifiers are indexed completely and in parts (`verdict-policy.ts` → itself, `verdict`, `polici`, `ts`), words are
stemmed by script (Snowball English and Russian), scripts without spaces become character bigrams.
"""

import re
import threading
import unicodedata
from collections.abc import Iterator
from datetime import date
from functools import lru_cache
from itertools import chain

import Stemmer

from pipeline.kernel.times import parse
from pipeline.text.text_cache import cache_by_text

MAX_TOKEN_CHARS = 128
SHORTEST_IDENTIFIER = 4
# A text of 100 words takes about a kilobyte.
MAX_CACHED_TEXTS = 8192

# No token starts with it, so terms of fields differ from words, as with term prefixes in other indexes.
FIELD_PREFIX = "="
# The term of memories that end with a question.
ASKS = f"{FIELD_PREFIX}asks"

# Snowball's English stop words, except negations: "not" distinguishes two memories.
STOP_WORDS = frozenset(
    """
    a about above after again all am an and any are as at be because been before being below between both but by
    can could did do does doing down during each few for from further had has have having he her here hers
    herself him himself his how i if in into is it its itself just me more most my myself now of off on once
    only or other our ours ourselves out over own same she should so some such than that the their theirs them
    themselves then there these they this those through to too under until up us very was we were what when
    where which while who whom why will with would you your yours yourself yourselves s t d ll m re ve
    """.split()  # noqa: SIM905 - readable as words
)

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)

# A run of word characters, joined by the connectors inside paths, names, versions and tickets.
_COMPOUND = re.compile(r"\w+(?:[-./:@#+\\]+\w+)*")
_CONNECTORS = re.compile(r"[-_./:@#+\\]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Spellings that distinguish identifiers from words: a digit next to a letter, a camelCase name, a connector that
# prose does not use.
_IDENTIFIER = re.compile(r"[^\W\d_][-_.:]*\d|\d[-_.:]*[^\W\d_]|[a-z][A-Z]|\w[_./\\@#]+\w|\d{5}")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
_CYRILLIC = re.compile(r"[\u0400-\u04ff]")
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u02bc": "'"})
# Without a lookbehind at its start, an expression looks for the apostrophe first.
_NEGATION = re.compile(r"[nN]'[tT]\b")
_CLITIC = re.compile(r"'(?<=\w')(?:s|d|m|re|ve|ll)\b", re.IGNORECASE)

_SPEAKER = re.compile(r"\s*([^\W\d_][\w .'’-]{0,39}):\s")
_QUESTION_MARK = re.compile(r"[?？؟]")
_LAST_SIGNS = re.compile(r"(?<!\W)\W+$")
_local = threading.local()


def search_tokens(text: str) -> list[str]:
    """Return the tokens of a text in order, repeats included."""
    return list(chain.from_iterable(map(list_compound_tokens, list_compounds(text))))


@cache_by_text(MAX_CACHED_TEXTS)
def list_tokens(text: str) -> tuple[str, ...]:
    """Return the search tokens of a text that several queries compare; the strings are shared."""
    return tuple(search_tokens(text))


def memory_tokens(content: str, occurred_at: str) -> list[str]:
    """Return the terms of a memory's content: its tokens, its day as a person names it, and its fields."""
    return [*search_tokens(content), *_day_tokens(parse(occurred_at).date()), *_field_terms(content)]


@lru_cache(maxsize=512)
def _day_tokens(day: date) -> tuple[str, ...]:
    return tuple(search_tokens(f"{WEEKDAYS[day.weekday()]} {day.day} {MONTHS[day.month - 1]} {day.year}"))


def identifiers(text: str) -> list[str]:
    """Return the tokens that identify one thing by their spelling: paths, symbols, versions, tickets, addresses."""
    candidates = (
        token
        for compound in list_compounds(text)
        if _IDENTIFIER.search(compound)
        for token in _identifier_tokens(compound)
    )
    return [token for token in dict.fromkeys(candidates) if len(token) >= SHORTEST_IDENTIFIER]


def metadata_term(token: str) -> str:
    """Return the term of memories with a token in their metadata."""
    return f"{FIELD_PREFIX}in:{token}"


def speaker_of(content: str) -> str:
    """Return the speaker, as in `Ada Lovelace: …`, in lower case; "" if there is none."""
    speaker = _SPEAKER.match(content)
    return speaker[1].strip().casefold() if speaker else ""


def is_field(term: str) -> bool:
    """Return whether a term names a field; fields do not count for a text's length."""
    return term.startswith(FIELD_PREFIX)


def _field_terms(content: str) -> Iterator[str]:
    if _QUESTION_MARK.search(content) and (signs := _LAST_SIGNS.search(content)) and _QUESTION_MARK.search(signs[0]):
        yield ASKS


def list_compounds(text: str) -> list[str]:
    """Return the spellings in a text: words, and runs of words with connectors; their tokens are the text's tokens."""
    # Transcripts are mostly ASCII, which needs no normalization.
    normal = text if text.isascii() else unicodedata.normalize("NFKC", text).translate(_APOSTROPHES)
    if "'" in normal:
        normal = _CLITIC.sub("", _NEGATION.sub(" not", normal))
    return _COMPOUND.findall(normal)


def _identifier_tokens(compound: str) -> Iterator[str]:
    tokens = list_compound_tokens(compound)
    # A run without parts is treated as a word.
    yield from tokens if len(tokens) == 1 else (token for token in _whole_tokens(compound) if token in tokens)


# Texts repeat their words: a cache makes the analysis of a typical memory five times faster.
@lru_cache(maxsize=50_000)
def list_compound_tokens(compound: str) -> tuple[str, ...]:
    """Return the tokens of a spelling."""
    return tuple(compound_tokens(compound))


def compound_tokens(compound: str) -> Iterator[str]:
    """Yield the tokens of a spelling, without a cache."""
    pieces = [piece for piece in _CONNECTORS.split(compound) if piece]
    parts = [part for piece in pieces for part in _CAMEL.split(piece)]
    if len(parts) > 1:
        yield from _whole_tokens(compound)
    for part in parts:
        yield from _word_tokens(part.casefold())


def _whole_tokens(compound: str) -> Iterator[str]:
    whole = compound.casefold()
    if len(whole) <= MAX_TOKEN_CHARS:
        yield whole
    base = re.split(r"[/\\]", whole)[-1]
    if base != whole and _CONNECTORS.search(base) and len(base) <= MAX_TOKEN_CHARS:
        yield base


def _word_tokens(word: str) -> Iterator[str]:
    position = 0
    for run in _UNSPACED.finditer(word):
        yield from _stem_word(word[position : run.start()])
        yield from _bigrams(run[0])
        position = run.end()
    yield from _stem_word(word[position:])


def _stem_word(word: str) -> Iterator[str]:
    if word and word not in STOP_WORDS:
        if _CYRILLIC.search(word):
            yield _stemmer("russian").stemWord(word[:MAX_TOKEN_CHARS])
        else:
            yield _stemmer("english").stemWord(_without_diacritics(word)[:MAX_TOKEN_CHARS])


def _without_diacritics(word: str) -> str:
    if word.isascii():
        return word
    return "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))


def _bigrams(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for index in range(len(run) - 1):
        yield run[index : index + 2]


def _stemmer(language: str) -> Stemmer.Stemmer:
    # A Snowball stemmer has state, so every thread has its own.
    stemmers: dict[str, Stemmer.Stemmer] = _local.__dict__.setdefault("stemmers", {})
    if language not in stemmers:
        stemmers[language] = Stemmer.Stemmer(language)
    return stemmers[language]
