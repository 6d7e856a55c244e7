"""Match the name of a fact with known facts: the same spelling or words, a synonym by its vector, or a candidate.

A wrong match overwrites a fact, a missed one only keeps two, so names match only if nothing speaks against it.
Vectors alone cannot distinguish `left_margin` from `right_margin`, which are closer than most synonyms. So names are
aligned word by word, and each two different words must be closer than opposites are under this encoder.
"""

import re
import threading
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Final

import numpy as np

from pipeline.index.encoder import Encoder, Vectors
from pipeline.kernel.lru import LruCache
from pipeline.kernel.records import FactKey
from pipeline.text.names import SEPARATOR, is_same_fact
from pipeline.text.personal_facts import USER, attribute_of_user

MAX_CACHED_NAMES: Final = 8192
# New names take about a millisecond each, and a reader waits for them.
MAX_NEW_NAMES: Final = 128
MAX_SIMILAR: Final = 5

# In this frame, a word's vector represents its meaning better than that of the bare word: measured on
# `fact_names.json`.
_TEMPLATE: Final = "the word '{}'"
# Word pairs that are very close without being synonyms; their cosines depend on the encoder.
_CONTRASTS: Final = (
    *(("husband", "wife"), ("upstream", "downstream"), ("landlord", "tenant"), ("monday", "tuesday")),
    *(("ascending", "descending"), ("importer", "import"), ("lender", "borrower"), ("visible", "invisible")),
)
# An ending changes a person or a thing into another one: the closest such pairs among a hundred.
_ENDINGS: Final = (("steward", "stewardess"), ("voisin", "voisine"), ("widow", "widower"), ("schueler", "schuelerin"))
# The margin of a synonym above the closest contrast, and above the closest pair with different endings.
_MARGIN: Final = 0.02
_ENDING_MARGIN: Final = 0.005
# The position of a contraction or a similar name between unrelated pairs and contrasts.
_CONTRACTION: Final = 0.9
_SIMILAR: Final = 0.8
# An encoder that knows neither of two words gives them the same vector.
_INDISTINCT: Final = 0.999
_LEAD: Final = 0.02

_LONGEST_CONTRACTION: Final = 0.6
_DIGITS: Final = re.compile(r"\d+")
_ARTICLE: Final = f"the{SEPARATOR}"


@dataclass(frozen=True, slots=True)
class KeyMatch:
    """The known key that was meant, or the given one; `similar` are other possible keys, closest first."""

    key: FactKey
    similar: tuple[FactKey, ...]


@dataclass(frozen=True, slots=True)
class NamesToCompare:
    """Known keys that match in one half: their other halves, in order, to compare."""

    asked: str
    others: Sequence[str]
    keys: Sequence[FactKey]


@dataclass(frozen=True, slots=True)
class CosineLimits:
    """The minimum cosines of similar words or names under an encoder, by the difference of their spelling."""

    synonym: float
    ending: float
    contraction: float
    similar: float


class NameVectors:
    """Unit vectors of the names that were used last, under one encoder. Thread-safe."""

    def __init__(self, encoder: Encoder, capacity: int) -> None:
        self.encoder = encoder
        self._kept: LruCache[str, Vectors] = LruCache(max(1, capacity))
        self.limits = _measure_limits(
            *(self.encode([word for pair in pairs for word in pair]) for pairs in (_CONTRASTS, _ENDINGS))
        )

    def learn(self, names: Collection[str], most: int) -> None:
        """Encode up to `most` names that are new."""
        chosen = [name for name in dict.fromkeys(names) if self._kept.peek(name) is None][:most]
        for name, vector in zip(chosen, self.encode(chosen) if chosen else (), strict=True):
            self._kept.put(name, vector)

    def cosines(self, name: str, others: Collection[str]) -> Vectors:
        """Compare a name with others; shape (others,), NaN if one is not cached, -1 if its vector has no meaning."""
        vector, unknown = self._find(name), np.full(self.encoder.dimension, np.nan, np.float32)
        known = (self._kept.find(other, _is_kept) for other in others)
        cosines: Vectors = np.array([unknown if other is None else other for other in known]) @ vector
        cosines[cosines >= _INDISTINCT] = -1
        return cosines

    def cosine(self, first: str, second: str) -> float:
        """Compare two names."""
        return float(self._find(first) @ self._find(second))

    def encode(self, names: Sequence[str]) -> Vectors:
        """Encode names without the cache; shape (names, dimension)."""
        return self.encoder.encode_documents([_TEMPLATE.format(name.replace(SEPARATOR, " ")) for name in names])

    def _find(self, name: str) -> Vectors:
        return self._kept.get(name, _is_kept, lambda: self.encode([name])[0])


def _is_kept(_vector: Vectors) -> bool:
    return True


class FactNames:
    """Find the known key that a key means; caches the vectors of names. Thread-safe."""

    def __init__(self, capacity: int = MAX_CACHED_NAMES) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        self._vectors: NameVectors | None = None

    def match(self, asked: FactKey, known: Collection[FactKey], encoder: Encoder | None) -> KeyMatch:
        """Find the known key that is meant; without an encoder, by spelling alone."""
        if asked in known:
            return KeyMatch(asked, ())
        subjects = _find_same_spelling(asked.subject, {key.subject for key in known})
        attributes = _find_same_spelling(asked.attribute, {key.attribute for key in known})
        spelled = [key for key in known if key.subject in subjects and key.attribute in attributes]
        if len(spelled) == 1:
            return KeyMatch(spelled[0], ())
        if spelled:
            return KeyMatch(asked, tuple(sorted(spelled)[:MAX_SIMILAR]))
        worded = _find_same_words(asked, known)
        if worded:
            return KeyMatch(worded[0], ()) if len(worded) == 1 else KeyMatch(asked, tuple(worded[:MAX_SIMILAR]))
        by_attribute = [key for key in known if key.subject in subjects]
        by_subject = [key for key in known if key.attribute in attributes]
        sides = (
            NamesToCompare(asked.attribute, [key.attribute for key in by_attribute], by_attribute),
            NamesToCompare(asked.subject, [key.subject for key in by_subject], by_subject),
        )
        if encoder is None or not (by_attribute or by_subject):
            return KeyMatch(asked, tuple(_short_forms(sides)[:MAX_SIMILAR]))
        return _nearest(asked, sides, self._of(encoder))

    def _of(self, encoder: Encoder) -> NameVectors:
        with self._lock:
            if self._vectors is None or self._vectors.encoder is not encoder:
                self._vectors = NameVectors(encoder, self._capacity)
            return self._vectors


def same_spelling(first: str, second: str) -> bool:
    """Return whether two canonical names differ only in separators and a leading article."""
    return _form_of(first).joined == _form_of(second).joined and _form_of(first).digits == _form_of(second).digits


def list_differing_words(first: str, second: str) -> list[tuple[str, str]]:
    """Align two names and pair the words that differ; empty if the numbers of words differ."""
    words, others = first.split(SEPARATOR), second.split(SEPARATOR)
    if len(words) != len(others):
        return []
    return [pair for pair in zip(words, others, strict=True) if pair[0] != pair[1]]


def is_contraction(first: str, second: str) -> bool:
    """Return whether one word is the other without some inner letters, such as `db` and `pkg`."""
    # A word without its end is often another word: `host` and `hostname`, `import` and `importer`.
    return _abbreviates(first, second) and not (first.startswith(second) or second.startswith(first))


def differ_in_ending(first: str, second: str) -> bool:
    """Return whether two words share a stem and have different endings, other than a plural -s."""
    shorter, longer = sorted((first, second), key=len)
    if longer == f"{shorter}s":
        return False
    stem = next((i for i, letter in enumerate(shorter) if letter != longer[i]), len(shorter))
    return 2 * stem >= len(shorter) and (stem == len(shorter) or shorter[-1] != longer[-1])


def _abbreviates(first: str, second: str) -> bool:
    """Return whether the letters of one word occur in the other in order, starting with its first letter."""
    shorter, longer = sorted((first, second), key=len)
    if not 2 <= len(shorter) <= _LONGEST_CONTRACTION * len(longer) or shorter[0] != longer[0]:
        return False
    rest = iter(longer)
    return all(character in rest for character in shorter)


def _find_same_spelling(name: str, others: Iterable[str]) -> set[str]:
    joined = _form_of(name).joined
    return {other for other in others if _form_of(other).joined == joined and same_spelling(name, other)}


def _find_same_words(asked: FactKey, known: Iterable[FactKey]) -> list[FactKey]:
    """Return the keys with the same words, wherever the subject ends: "staging db port", "staging database port"."""
    if asked.subject == USER:
        attribute = attribute_of_user(asked.attribute)
        return sorted(key for key in known if key.subject == USER and attribute_of_user(key.attribute) == attribute)
    name = f"{asked.subject} {asked.attribute}"
    return sorted(key for key in known if is_same_fact(f"{key.subject} {key.attribute}", name))


def _nearest(asked: FactKey, sides: Sequence[NamesToCompare], vectors: NameVectors) -> KeyMatch:
    near: list[tuple[float, FactKey]] = []
    meant: list[FactKey] = []
    complete = True
    for side in filter(lambda side: side.others, sides):
        cosines = vectors.cosines(side.asked, side.others)
        if np.isnan(cosines).any():
            vectors.learn(side.others, MAX_NEW_NAMES)
            cosines = vectors.cosines(side.asked, side.others)
        # A name that was not compared might be closer than the match.
        complete &= not np.isnan(cosines).any()
        for index in _near(side, cosines, vectors.limits):
            near.append((-float(cosines[index]), side.keys[index]))
            if cosines[index] >= vectors.limits.contraction and _same_meaning(side.asked, side.others[index], vectors):
                meant.append(side.keys[index])
    near.sort()
    if complete and len(meant) == 1:
        [best] = (cosine for cosine, key in near if key == meant[0])
        if all(best + _LEAD <= cosine for cosine, key in near if key != meant[0]):
            return KeyMatch(meant[0], ())
    similar = dict.fromkeys([*meant, *(key for _, key in near), *_short_forms(sides)])
    return KeyMatch(asked, tuple(similar)[:MAX_SIMILAR])


def _near(side: NamesToCompare, cosines: Vectors, limits: CosineLimits) -> list[int]:
    """Return the positions of the similar names with the same digits, closest first."""
    digits = _form_of(side.asked).digits
    positions = np.flatnonzero(cosines >= min(limits.similar, limits.contraction))
    positions = positions[np.argsort(-cosines[positions], kind="stable")]
    alike = (position for position in positions.tolist() if _form_of(side.others[position]).digits == digits)
    return list(islice(alike, MAX_SIMILAR))


def _same_meaning(first: str, second: str, vectors: NameVectors) -> bool:
    """Return whether each two different words are synonyms."""
    pairs = list_differing_words(first, second)
    return bool(pairs) and all(_same_word(*pair, vectors) for pair in pairs)


def _same_word(first: str, second: str, vectors: NameVectors) -> bool:
    # The contrasts are ASCII and cannot calibrate other scripts.
    if not (first.isascii() and second.isascii()):
        return False
    if is_contraction(first, second):
        least = vectors.limits.contraction
    else:
        least = vectors.limits.ending if differ_in_ending(first, second) else vectors.limits.synonym
    return least <= vectors.cosine(first, second) < _INDISTINCT


def _short_forms(sides: Sequence[NamesToCompare]) -> list[FactKey]:
    """Return the keys in which one name may abbreviate the other."""
    keys = []
    for side in sides:
        # An abbreviation has the same first letter, which excludes most names.
        initial = side.asked[:1]
        for key, other in zip(side.keys, side.others, strict=True):
            if other[:1] == initial and _is_short_form(side.asked, other):
                keys.append(key)
    return sorted(keys)


def _is_short_form(first: str, second: str) -> bool:
    """Return whether one name abbreviates the other, word by word or completely."""
    short, long = _form_of(first), _form_of(second)
    if short.digits != long.digits:
        return False
    if _abbreviates(short.joined, long.joined):
        return True
    pairs = list_differing_words(first, second) if short.initials == long.initials else []
    return bool(pairs) and all(_abbreviates(*pair) for pair in pairs)


@dataclass(frozen=True, slots=True)
class _NameForm:
    joined: str
    initials: str
    digits: tuple[str, ...]


@lru_cache(maxsize=2 * MAX_CACHED_NAMES)
def _form_of(name: str) -> _NameForm:
    words = name.split(SEPARATOR)
    joined = name.removeprefix(_ARTICLE).replace(SEPARATOR, "")
    return _NameForm(joined, "".join(word[:1] for word in words), tuple(_DIGITS.findall(name)))


def _measure_limits(contrasts: Vectors, endings: Vectors) -> CosineLimits:
    """Calibrate an encoder by pairs of contrasting words, each pair in two rows."""
    cosines = contrasts[::2] @ contrasts[1::2].T
    opposed = np.diagonal(cosines)
    unrelated = float(cosines[~np.eye(len(cosines), dtype=np.bool_)].mean())
    reach = float(opposed.mean()) - unrelated
    return CosineLimits(
        synonym=float(opposed.max()) + _MARGIN,
        ending=float((endings[::2] * endings[1::2]).sum(axis=1).max()) + _ENDING_MARGIN,
        contraction=unrelated + _CONTRACTION * reach,
        similar=unrelated + _SIMILAR * reach,
    )
