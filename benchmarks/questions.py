"""Questions to the corpus as people ask them: by a name, in other words, for a date, in two or three keywords."""

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any

from benchmarks.company import synonyms, verbs, words

LONGEST = 16
UNANSWERABLE = 0.1
REPLACED = 0.4
# Tries in vain before a corpus counts as exhausted.
PATIENCE = 60

IDENTIFIER = re.compile(
    r"[A-Z]{2,5}-\d+|(?:[\w-]+/)+[\w-]+\.\w+|\b[a-z]+(?:_[a-z]+)+\b|\b[a-zA-Z]+[a-z][A-Z]\w+|\b\d+\.\d+\.\d+\b"
)
WORD = re.compile(r"(?<![\w/._-])[a-z]{4,}(?![\w/_-])")
NO_CONTENT = frozenset(
    """
    that this then than they them when with without were where what which while will would could from have into only
    over until first still says said knows known take took twice times every because before after again always never
    almost other their there means nobody nothing instead since about each else more
    """.split()  # noqa: SIM905 - readable as words
)

# Slots: n and m nouns, v a verb, p a past form, j an adjective, a to d any words, i and k names, x to z alien words.
TEMPLATES: dict[str, tuple[str, ...]] = {
    "literal": (
        "what happened with {i} and the {n}",
        "why does {i} touch the {n} {m}",
        "where do we use {i} for the {j} {n}",
        "what do we know about {i} and the {n} that was {p}",
        "who worked on {i} when the {n} was {j}",
        "what was wrong with the {j} {n} in {i}",
        "can you remind me why {i} has anything to do with the {j} {n} and the {m}",
    ),
    "paraphrase": (
        "how did we deal with the {j} {n} and the {m}",
        "what was the reason for the {n} {m} being {p}",
        "do we still {v} the {n} because of the {m}",
        "is there anything on the {n} and {m} that gets {j}",
        "why did somebody {v} the {n} {m}",
        "who had to {v} the {j} {n}",
        "we once had a {j} {n} which somebody {p}, what became of the {m} back then",
    ),
    "when": (
        "when did we {v} the {n} of the {m}",
        "when was the {j} {n} last {p}",
        "in which month did the {n} and the {m} come up",
        "how long ago did we talk about {i} and the {n}",
    ),
    "keywords": ("{a} {b} {c}", "{i} {a}", "{i} {a} {b}", "{a} {b} {c} {d}"),
    "session": (
        "what did we do around {i} and {k}",
        "summarise the work on {i} with the {n} and the {m}",
        "what came out of the session on the {j} {n} and {i}",
    ),
    "none": (
        "which {x} did we order for the {y} {z}",
        "what does the {x} say about the {y}",
        "when is the {x} and {y} {z} due",
        "how do I tune a {x} for the {y}",
        "did anybody paint the {x} next to the {y} {z}",
    ),
}
KINDS = ("literal", "literal", "paraphrase", "paraphrase", "paraphrase", "when", "keywords", "session")


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the memories (places in the corpus) of which one answers it; none where nothing does."""

    text: str
    kind: str
    sources: tuple[int, ...]


def questions(memories: Sequence[Mapping[str, Any]], count: int, seed: int) -> list[Question]:
    """Ask `count` different questions of 2 to 16 words, fewer where the corpus gives no more."""
    chance = random.Random(seed)
    rarity = _rarity(memories)
    sessions = [
        tuple(place for place, _ in group)
        for _, group in groupby(enumerate(memories), key=lambda item: item[1]["session_id"])
    ]
    asked: dict[str, Question] = {}
    in_vain = 0
    while len(asked) < count and in_vain < PATIENCE:
        question = _question(chance, memories, sessions, rarity)
        if question is None or question.text in asked:
            in_vain += 1
            continue
        # Questions without an answer never run out.
        in_vain = 0 if question.sources else in_vain
        asked[question.text] = question
    return list(asked.values())


def _rarity(memories: Sequence[Mapping[str, Any]]) -> Callable[[str], float]:
    seen = Counter(word for memory in memories for word in set(WORD.findall(memory["content"])))
    return lambda word: 1 / (20 + seen[word]) ** 0.5


def _question(
    chance: random.Random,
    memories: Sequence[Mapping[str, Any]],
    sessions: Sequence[tuple[int, ...]],
    rarity: Callable[[str], float],
) -> Question | None:
    if chance.random() < UNANSWERABLE:
        slots = dict(zip("xyz", chance.sample(words()["absent"], 3), strict=True))
        return Question(chance.choice(TEMPLATES["none"]).format(**slots), "none", ())
    kind = chance.choice(KINDS)
    if kind == "session":
        sources = chance.choice(sessions)
        content = " ".join(memories[place]["content"] for place in sources)
    else:
        sources = (chance.randrange(len(memories)),)
        content = memories[sources[0]]["content"]
    slots = _names(chance, content) | _words(chance, content, rarity)
    try:
        text = chance.choice(TEMPLATES[kind]).format(**slots)
    except KeyError:
        # The memory has no such part; another one has.
        return None
    return Question(text, kind, sources) if len(text.split()) <= LONGEST else None


def _names(chance: random.Random, content: str) -> dict[str, str]:
    found = list(dict.fromkeys(IDENTIFIER.findall(content)))
    return dict(zip("ik", chance.sample(found, min(2, len(found))), strict=False))


def _words(chance: random.Random, content: str, rarity: Callable[[str], float]) -> dict[str, str]:
    candidates = sorted(set(WORD.findall(content)) - NO_CONTENT)
    # People remember what was special: rare words come first, mostly.
    chosen = sorted(candidates, key=lambda word: chance.random() ** (1 / rarity(word)), reverse=True)
    slots = dict(zip("abcd", (_replace_word(chance, word) for word in chosen), strict=False))
    for letters, name in (("j", "adjectives"), ("nm", "nouns"), ("p", "pasts")):
        fitting = [word for word in chosen if word in _classes()[name]][: len(letters)]
        slots |= dict(zip(letters, (_replace_word(chance, word) for word in fitting), strict=False))
        # Many a word is of two classes: a question says it once.
        chosen = [word for word in chosen if word not in fitting]
    # What was told in the past is asked for in the base form, and the other way round.
    bases = [_bases()[word] for word in chosen if word in _bases()]
    return slots | ({"v": _replace_word(chance, chance.choice(bases))} if bases else {})


def _replace_word(chance: random.Random, word: str) -> str:
    return synonyms()[word] if word in synonyms() and chance.random() < REPLACED else word


@cache
def _classes() -> dict[str, frozenset[str]]:
    return {
        "nouns": frozenset(words()["nouns"]),
        "adjectives": frozenset(words()["adjectives"]),
        "pasts": frozenset(past for _, past in verbs()),
    }


@cache
def _bases() -> dict[str, str]:
    return {form: base for base, past in verbs() for form in (base, past)}
