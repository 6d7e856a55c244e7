"""Describe an arc by extraction: a title from its words, a summary from its sentences, and its status."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from pipeline.features.arcs.store import CUT, TITLE_SEPARATOR, ArcStatus, Strand
from pipeline.kernel.enums import UNFINISHED
from pipeline.kernel.records import CAPTURED_TAG, Kind
from pipeline.kernel.times import parse
from pipeline.text.lexicon import load_lexicon
from pipeline.text.tokens import STOP_WORDS, search_tokens

TITLE_CHARS = 80
TITLE_PARTS = 3
LONGEST_PHRASE = 3
SUMMARY_SENTENCES = 3
SENTENCE_CHARS = 240
SHORTEST_SENTENCE = 40
ALIKE = 0.5
_LEXICON = load_lexicon("titles")
_FUNCTION_WORDS = load_lexicon("languages").table("function_words")
# Words that only connect or count name nothing, in any phrase.
COLOURLESS = frozenset(
    (
        *_LEXICON.words("english"),
        *_LEXICON.words("german"),
        *chain(*map(_FUNCTION_WORDS.words, _FUNCTION_WORDS.entries)),
    )
)
NAMED_SHARE = 1.4
# A tag on half of an arc's members names the arc better than any of its words.
NAMING_SHARE = 0.5
STILL_ACTIVE = timedelta(days=14)

_WORD = re.compile(r"\w+(?:[-'’./_]\w+)*")
_BREAK = re.compile(r"[,;:()\[\]{}«»„“”\"`?!|\n]|\.\s|\s[-–—]\s")
# Alone such a word refers to a missing noun: "locked", "properly".
_HANGING = re.compile(r"[A-Za-z][a-z]+(?:[^e]ed|ly)")
# A question belongs to its answer, and a point after a number does not end a sentence.
_SENTENCE_END = re.compile(r"(?<=[^\d?][.!])\s+")
_CLOSES = re.compile(
    r"\b(fixed|resolved|solved|done|completed|finished|shipped|released|rolled out|closed|delivered|went live|"
    r"is live|(?:goal|target) (?:was )?met|no longer needed)\b",
    re.IGNORECASE,
)
_DENIES = re.compile(
    r"\b(not|never|until|once|when|if|to be|will be|must be|should be|isn['’]t|wasn['’]t|aren['’]t|yet|open)"
    r"\s+(?:\w+\s+){0,2}$",
    re.IGNORECASE,
)


class _Word(NamedTuple):
    start: int
    end: int
    stem: str


@dataclass(frozen=True, slots=True)
class _Clause:
    """A stretch of text that no phrase crosses, and its words; a word without a stem is never part of a title."""

    text: str
    words: Sequence[_Word]


def title(members: Sequence[Strand], spread: Mapping[str, int], size: int) -> str:
    """Return a title that distinguishes an arc in its scope; `spread` is the number of memories, of `size`, with a
    term.

    Its parts occur word for word in members or are tags of members.
    """
    parts: list[str] = []
    used: set[str] = set()
    for phrase in (*_naming_tag(members), *_phrases(members, spread, size)):
        stems = set(search_tokens(phrase))
        if stems & used or len(TITLE_SEPARATOR.join((*parts, phrase))) > TITLE_CHARS:
            continue
        parts.append(phrase)
        used |= stems
        if len(parts) == TITLE_PARTS:
            break
    return TITLE_SEPARATOR.join(parts) or opening(members[-1].content, TITLE_CHARS)


def summary(members: Sequence[Strand], strength: Mapping[int, float]) -> str:
    """Return the openings of the most central members, in order of time, one per line; `strength` is by row number."""
    chosen: list[tuple[Strand, set[str]]] = []
    for member in sorted(members, key=lambda member: (-strength.get(member.seq, 0.0), member.seq)):
        terms = set(search_tokens(member.content))
        repeats = any(len(terms & known) > ALIKE * min(len(terms), len(known)) for _, known in chosen)
        if not repeats:
            chosen.append((member, terms))
        if len(chosen) == SUMMARY_SENTENCES:
            break
    in_order = sorted((member for member, _ in chosen), key=lambda member: (member.occurred_at, member.seq))
    return "\n".join(opening(member.content) for member in in_order)


def opening(content: str, most: int = SENTENCE_CHARS) -> str:
    """Return the first sentence of a text, or several if it is short; a cut text ends with an ellipsis."""
    line = next((line.strip() for line in content.split("\n") if line.strip()), "")
    for end in _SENTENCE_END.finditer(line):
        if end.start() >= SHORTEST_SENTENCE:
            line = line[: end.start()]
            break
    if len(line) <= most:
        return line
    cut = line[: most - 1]
    return (cut.rpartition(" ")[0] or cut) + CUT


def status(members: Sequence[Strand], now: datetime) -> ArcStatus:
    """Return the status of an arc whose members are given in order of time: active, dormant or closed."""
    goals = [member.goal_status for member in members if member.goal_status is not None]
    open_goals = any(goal in UNFINISHED for goal in goals)
    if not open_goals and (bool(goals) or ends(members[-1])):
        return ArcStatus.CLOSED
    return ArcStatus.ACTIVE if now - parse(members[-1].occurred_at) < STILL_ACTIVE else ArcStatus.DORMANT


def ends(strand: Strand) -> bool:
    """Tell whether a memory says that something is done."""
    if strand.kind is Kind.MILESTONE:
        return True
    if strand.kind not in (Kind.ACTIVITY, Kind.FACT, Kind.EPISODE):
        # A decision or a lesson about a fix sets a rule and closes nothing.
        return False
    return any(not _DENIES.search(strand.content[: match.start()]) for match in _CLOSES.finditer(strand.content))


def _naming_tag(members: Sequence[Strand]) -> list[str]:
    # Capture tags every statement.
    tags = Counter(tag for member in members for tag in member.tags if tag != CAPTURED_TAG)
    [(tag, times)] = tags.most_common(1) or [("", 0)]
    return [tag] if times >= NAMING_SHARE * len(members) else []


def _phrases(members: Sequence[Strand], spread: Mapping[str, int], size: int) -> list[str]:
    """List the phrases that at least two members share, the most characteristic first."""
    clauses = [_clauses(member.content) for member in members]
    frequent = Counter(stem for text in clauses for stem in {word.stem for clause in text for word in clause.words})
    forms: dict[tuple[str, ...], Counter[str]] = {}
    for text in clauses:
        phrases: dict[tuple[str, ...], str] = {}
        for clause in text:
            for stems, form in _runs(clause, frequent):
                phrases.setdefault(stems, form)
        for stems, form in phrases.items():
            forms.setdefault(stems, Counter())[form] += 1
    shared = {
        stems: form
        for stems, seen in forms.items()
        if seen.total() > 1 and not _HANGING.fullmatch(form := min(seen, key=lambda form: (-seen[form], form)))
    }

    def worth(stems: tuple[str, ...]) -> float:
        share = (forms[stems].total() - 0.5) / len(members)
        rarity = math.log((size + 1) / min(spread.get(stem, 1) for stem in stems))
        # A word with a capital or a digit is more often a name.
        named = 1.0 if shared[stems].islower() else NAMED_SHARE
        return share * rarity * named * (1 + 0.4 * (len(stems) - 1))

    return [shared[stems] for stems in sorted(shared, key=lambda stems: (-round(worth(stems), 9), stems))]


def _clauses(content: str) -> list[_Clause]:
    return [
        _Clause(clause, [_Word(match.start(), match.end(), _stem(match[0])) for match in _WORD.finditer(clause)])
        for clause in _BREAK.split(content)
    ]


def _runs(clause: _Clause, frequent: Mapping[str, int]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the phrases of a clause, as stems and as written, if all their words are shared with other members."""
    for begin, first in enumerate(clause.words):
        stems: list[str] = []
        for last in clause.words[begin : begin + LONGEST_PHRASE]:
            if not last.stem or frequent[last.stem] < 2:
                break
            stems.append(last.stem)
            yield tuple(stems), clause.text[first.start : last.end].removesuffix("'s").removesuffix("’s")


# Texts repeat their words.
@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    """Return the stem of a word that may be part of a title, else an empty text."""
    plain = word.casefold()
    short = len(word) <= 2 or (len(word) == 3 and word.islower())
    if short or word.isdigit() or plain in STOP_WORDS or plain in COLOURLESS:
        return ""
    return next(iter(search_tokens(word)), "")
