"""Take from many texts the few sentences that say most of what they have in common; no model, any language."""

import math
import re
from collections import Counter
from collections.abc import Sequence

from pipeline.records import Memory
from pipeline.text.instructions import instructs
from pipeline.text.redaction import redact
from pipeline.text.tokens import search_tokens

FEWEST, MOST = 3, 5
MAX_SENTENCE_CHARS = 400
# A text longer than this is represented by its beginning.
READ_CHARS = 2000
CUT = "…"

_ENDS = re.compile(r"(?<=[.!?…])[\"'”»)]*\s+(?=[^\W_a-zà-ÿа-яёіїєґ]|[\"'«„“(\[`])|(?<=[。！？])(?=.)|\n+")
_ABBREVIATED = re.compile(r"(?:^|[\s(])(?:[^\W\d_]|\d{1,2}|[A-ZÀ-ÞА-ЯЁІЇЄҐ]\w{1,2}|vs|etc|bzw|ca|approx)\.$")
_DIGIT = re.compile(r"\d")
# Of what a model says, this much must stand in what it was told.
_GROUNDED = 0.6


def sentences(text: str) -> list[str]:
    """Split a text into its sentences and lines."""
    found: list[str] = []
    for part in (piece.strip() for piece in _ENDS.split(text[:READ_CHARS])):
        if found and _ABBREVIATED.search(found[-1]):
            found[-1] = f"{found[-1]} {part}"
        elif part:
            found.append(part)
    return found


def shortened(sentence: str) -> str:
    """Return a sentence of at most so many characters, cut between words."""
    if len(sentence) <= MAX_SENTENCE_CHARS:
        return sentence
    head = sentence[:MAX_SENTENCE_CHARS]
    return f"{head.rsplit(' ', 1)[0]}{CUT}"


def central_sentences(memories: Sequence[Memory]) -> list[tuple[Memory, str]]:
    """Return the most central sentences with their memories, one of each, in the order given."""
    parts = [(place, sentence) for place, memory in enumerate(memories) for sentence in sentences(memory.content)]
    tokens = [frozenset(search_tokens(sentence)) for _, sentence in parts]
    mentions: Counter[str] = Counter()
    for place in range(len(memories)):
        mentions.update(frozenset[str]().union(*(t for t, (p, _) in zip(tokens, parts, strict=True) if p == place)))
    # What only one memory says speaks for none of the others.
    weights = {token: math.log(times) for token, times in mentions.items()}
    wanted = min(MOST, max(FEWEST, len(memories) // 2))
    chosen: dict[int, str] = {}
    while len(chosen) < wanted:
        left = [number for number, (place, _) in enumerate(parts) if place not in chosen]
        if not left:
            break
        best = max(left, key=lambda n: (sum(weights[t] for t in tokens[n]) / math.sqrt(len(tokens[n]) + 4), -n))
        chosen[parts[best][0]] = parts[best][1]
        for token in tokens[best]:
            # What was said once is worth less the next time.
            weights[token] /= 2
    return [(memories[place], shortened(chosen[place])) for place in sorted(chosen)]


def is_grounded(text: str, told: str) -> bool:
    """Tell whether a model's text keeps to what it was told: every number and name of it, and most of its words."""
    tokens, known = set(search_tokens(text)), set(search_tokens(told))
    if not tokens or instructs(text) or redact(text).kinds:
        return False
    invented = tokens - known
    return not any(map(_DIGIT.search, invented)) and len(invented) <= (1 - _GROUNDED) * len(tokens)
