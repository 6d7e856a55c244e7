"""A fictitious company: its words, people, services, files and errors, each with the skew of real usage."""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from pathlib import Path

WORDS = Path(__file__).parent / "data" / "words.txt"
SEED = 20_240_601
ONSETS = "b br c ch d dr f fl g gl gr h j k kl l m n p pl qu r s sk st t tr v w z".split()  # noqa: SIM905 - as words
VOWELS = "a e i o u ai ea ou".split()  # noqa: SIM905 - ditto
CODAS = "l ld lm m n nd nk r rd rn rv s sk st x".split()  # noqa: SIM905 - ditto
ERROR_ENDINGS = ("Error", "Timeout", "Conflict", "Exhausted", "Refused", "Overflow", "Mismatch")
HOST_ROLES = ("prod", "stage", "edge", "batch", "db", "cache")
TEAMS = ("PAY", "OPS", "WEB", "DATA", "AUTH", "SHIP", "CORE", "MOB")


@cache
def words() -> dict[str, list[str]]:
    """Return the word lists of the data file by section."""
    lists: dict[str, list[str]] = {}
    for part in re.split(r"^\[", WORDS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, _, body = part.partition("]\n")
        lines = body.splitlines()
        # A synonym may have several words: there a line is one entry.
        lists[name] = lines if name == "synonyms" else list(dict.fromkeys(body.split()))
    return lists


@cache
def synonyms() -> dict[str, str]:
    """Return another word for a word, in both directions."""
    pairs = [line.split(maxsplit=1) for line in words()["synonyms"]]
    return {b: a for a, b in pairs} | dict(pairs)


@cache
def verbs() -> list[tuple[str, str]]:
    """Return the verbs, each with its past form."""
    return [_with_past(entry) for entry in words()["verbs"]]


@dataclass(frozen=True)
class Zipf:
    """Things of which few are everywhere and most are rare."""

    items: Sequence[str]
    weights: list[float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        shares = (1 / (rank + 2.7) for rank in range(len(self.items)))
        object.__setattr__(self, "weights", list(accumulate(shares)))

    def draw(self, chance: random.Random) -> str:
        """Draw one."""
        return chance.choices(self.items, cum_weights=self.weights)[0]

    def some(self, chance: random.Random, count: int) -> list[str]:
        """Draw a few different ones."""
        found: dict[str, None] = {}
        while len(found) < min(count, len(self.items)):
            found[self.draw(chance)] = None
        return list(found)


@dataclass(frozen=True)
class Company:
    """All that the company's memories speak of."""

    nouns: Zipf
    verbs: Zipf  # each as "base past"
    adjectives: Zipf
    adverbs: Zipf
    people: Zipf
    services: Zipf
    files: Zipf
    functions: Zipf
    keys: Zipf
    errors: Zipf
    packages: Zipf
    hosts: Zipf


@cache
def company() -> Company:
    """Make the company; it is always the same one."""
    chance = random.Random(SEED)
    lists = {name: chance.sample(values, len(values)) for name, values in words().items()}
    nouns, adjectives = lists["nouns"], lists["adjectives"]
    bases = [base for base, _ in verbs()]
    names = _coin(chance, 420)
    roles = ("gateway", "worker", "service", "sync", "portal", "engine", "store", "relay")
    services = [f"{name}-{chance.choice(roles)}" if chance.random() < 0.6 else name for name in names[:240]]
    packages = [f"{name}{chance.choice(('', '-core', 'js', '-client', 'kit'))}" for name in names[240:]]
    return Company(
        nouns=Zipf(nouns),
        verbs=Zipf([f"{base} {past}" for base, past in chance.sample(verbs(), len(verbs()))]),
        adjectives=Zipf(adjectives),
        adverbs=Zipf(lists["adverbs"]),
        people=Zipf(lists["people"]),
        services=Zipf(services),
        files=Zipf(_unique(1600, lambda: _file(chance, nouns, names))),
        functions=Zipf(_unique(1400, lambda: _function(chance, bases, nouns))),
        keys=Zipf(_unique(700, lambda: "_".join(chance.sample(nouns, chance.choice((2, 2, 3)))))),
        errors=Zipf(_unique(300, lambda: _error(chance, nouns, adjectives))),
        packages=Zipf(packages),
        hosts=Zipf([f"{chance.choice(HOST_ROLES)}-{name}-{n:02}" for n, name in enumerate(names[:60], start=1)]),
    )


def _unique(count: int, make: Callable[[], str]) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < count:
        found[make()] = None
    return list(found)


def _coin(chance: random.Random, count: int) -> list[str]:
    def syllable() -> str:
        return chance.choice(ONSETS) + chance.choice(VOWELS) + (chance.choice(CODAS) if chance.random() < 0.5 else "")

    return _unique(count, lambda: "".join(syllable() for _ in range(chance.choice((2, 2, 3)))))


def _with_past(entry: str) -> tuple[str, str]:
    base, _, irregular = entry.partition("/")
    if irregular:
        return base, irregular
    if base.endswith("e"):
        return base, f"{base}d"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base, f"{base[:-1]}ied"
    return base, f"{base}ed"


def _file(chance: random.Random, nouns: list[str], names: list[str]) -> str:
    folders = chance.sample(words()["folders"], chance.choice((1, 1, 2)))
    if chance.random() < 0.4:
        folders.insert(0, chance.choice(names))
    stem = "_".join(chance.sample(nouns, chance.choice((1, 1, 2))))
    return f"{'/'.join(folders)}/{stem}.{chance.choice(words()['extensions'])}"


def _function(chance: random.Random, bases: list[str], nouns: list[str]) -> str:
    parts = [chance.choice(bases), *chance.sample(nouns, chance.choice((1, 1, 2)))]
    if chance.random() < 0.5:
        return "_".join(parts)
    return parts[0] + "".join(part.capitalize() for part in parts[1:])


def _error(chance: random.Random, nouns: list[str], adjectives: list[str]) -> str:
    if chance.random() < 0.25:
        return (
            f"{chance.choice('EHPSW')}{chance.choice(('CONN', 'LOCK', 'RATE', 'TLS', 'IO'))}{chance.randint(100, 999)}"
        )
    first = chance.choice(adjectives if chance.random() < 0.3 else nouns).replace("-", "")
    return first.capitalize() + chance.choice(nouns).capitalize() + chance.choice(ERROR_ENDINGS)
