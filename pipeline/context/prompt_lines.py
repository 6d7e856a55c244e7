"""Choose the lines for a message: rules, code that the message names, and the best of the other results."""

from collections.abc import Sequence
from dataclasses import replace
from sqlite3 import Connection

from pipeline.context.code_names import defines, read_code_names
from pipeline.context.lesson_records import is_rule
from pipeline.context.render import Entry
from pipeline.kinds import is_indexed, is_said, render_text
from pipeline.recall.deadline import Deadline
from pipeline.recall.relevance import RELEVANT
from pipeline.recall.said_first import put_said_first
from pipeline.records import Filter, Kind, Memory, Source, Viewer
from pipeline.records.recall import Hit, Step
from pipeline.store import ingested, memories
from pipeline.text.excerpts import CUT, find_excerpt, find_news
from pipeline.text.tokens import search_tokens

# Unrequested memories delay an agent, so only the few best are shown.
TOLD = 5
EXCERPT_CHARS = 200
# The best result is shown nearly completely, if it is short enough to be about one thing, such as a commit message.
LEADING_CHARS = 720
LEADING_TEXT_CHARS = 1600
# A lone result may fill the block.
LONE_CHARS = 1000
TOLD_SHARE_OF_BEST = 0.7
# Indexed code needs a higher score, because all files of a project are slightly relevant: in addition to named code,
# show only hits as good as the best, and from the history only hits that are certainly relevant.
CODE_TOLD = 3
NEAR_NAMED_SHARE = 0.95
COMMIT_RELEVANCE = 0.9
HISTORY = "history"
# Maximum number of files with the same name in different folders.
FILES_A_NAME = 2


def choose_lines(hits: Sequence[Hit], named: Sequence[Hit], message: str, most: int = TOLD) -> list[Hit]:
    """Return the rules, then the code that a message names, then the few best other hits; each file once.

    More than `most` lines only if all are rules.

    The user's own words come before commits and outlines about the same thing, which are longer and more numerous.
    """
    hits = [hit for hit in hits if hit.annotations.superseded_by is None]
    best = max((hit.score for hit in hits), default=0.0)
    # An identifier puts its memory first, but says nothing against the other memories about the message.
    sources = [_source_of(hit.memory) for hit in hits]
    matches = list(map(_score_as_match, hits))
    best_match = max(matches, default=0.0)
    best_said = max((match for match, source in zip(matches, sources, strict=True) if source is None), default=0.0)
    rules = [hit for hit in hits if is_rule(hit.memory)]
    code = {_source_of(hit.memory): hit for hit in named}
    others = []
    for hit, source in zip(hits, sources, strict=True):
        near = best_said if is_said(hit.memory) else best_match
        if is_rule(hit.memory) or hit.score < TOLD_SHARE_OF_BEST * near:
            continue
        if source is None:
            others.append(hit)
        elif source not in code and len(code) < CODE_TOLD and _is_worth_telling(hit, best, named):
            code[source] = hit
    beside = [*others, *list(code.values())[len(named) :]]
    ordered = sorted(beside, key=lambda hit: hit.score, reverse=True)
    return [*rules, *named, *put_said_first(ordered, message)][: max(most, min(len(rules), TOLD))]


def _score_as_match(hit: Hit) -> float:
    return hit.score - hit.literal_score


def _source_of(memory: Memory) -> str | None:
    """Return the file or history that a memory was indexed from, None if it was not indexed from code."""
    return HISTORY if _is_commit(memory) else _place_of(memory)


def _is_worth_telling(hit: Hit, best: float, named: Sequence[Hit]) -> bool:
    if _is_commit(hit.memory):
        return not named and hit.relevance >= COMMIT_RELEVANCE
    return not named or hit.score >= NEAR_NAMED_SHARE * best


def find_named_code(db: Connection, viewer: Viewer, message: str, found: Sequence[Hit]) -> list[Hit]:
    """Return the files that a message names, then those that define a named symbol, one hit each."""
    names = read_code_names(message)
    named = [hit for file in names.files for hit in _find_file(db, viewer, file, found)]
    for symbol in names.symbols:
        holders = [hit for hit in found if hit.memory.kind is Kind.CODE and defines(hit.memory.content, symbol)]
        named += holders[:1]
    if not named:
        return []
    best = max(hit.score for hit in found) if found else 0.0
    first: dict[str | None, Hit] = {}
    for hit in named:
        first.setdefault(_place_of(hit.memory), hit)
    # Above all other hits, in their order.
    return [replace(hit, score=best + 1 / (1 + rank)) for rank, hit in enumerate(first.values())]


def _find_file(db: Connection, viewer: Viewer, file: str, found: Sequence[Hit]) -> list[Hit]:
    """Return the best part of each file with a name, or the first part if none is relevant."""
    known = {hit.memory.seq: hit for hit in found}
    hits = []
    for seqs in ingested.list_file_memories(db, file, FILES_A_NAME):
        parts = list(memories.filter_showable(db, seqs, Filter(viewer=viewer)).values())
        scored = [known[part.seq] for part in parts if part.seq in known]
        hits += [max(scored, key=lambda hit: hit.score)] if scored else [Hit(one, 0.0, RELEVANT) for one in parts[:1]]
    return hits


def _place_of(memory: Memory) -> str | None:
    """Return the file that a memory outlines, None for any other."""
    return None if memory.anchor is None or memory.source is not Source.IMPORT else memory.anchor.path


def _is_commit(memory: Memory) -> bool:
    """Return whether a memory was indexed from a project's history."""
    return is_indexed(memory) and memory.kind is not Kind.CODE


def excerpt_hits(hits: Sequence[Hit], message: str, deadline: Deadline, *, leads: bool = False) -> list[Entry]:
    """Return the part of each hit that is about a message; with `leads`, the first one is longer."""
    asked = frozenset(search_tokens(message))
    leading_chars = LONE_CHARS if len(hits) == 1 else LEADING_CHARS
    return [
        Entry(
            hit.memory,
            hit.annotations,
            excerpt=_excerpt(hit.memory, asked, deadline, leading_chars if leads and not number else None),
        )
        for number, hit in enumerate(hits)
    ]


def _excerpt(memory: Memory, asked: frozenset[str], deadline: Deadline, leading_chars: int | None) -> str:
    """Return the part of a memory that is about a message, or its beginning if the deadline is near.

    The part of a file outline starts with the path.
    """
    text = render_text(memory)
    if len(text) > EXCERPT_CHARS and deadline.must_skip(Step.EXCERPTS):
        return f"{text[: EXCERPT_CHARS - len(CUT)]}{CUT}"
    if leading_chars and memory.kind is not Kind.CODE and len(text) <= LEADING_TEXT_CHARS:
        return find_news(text, asked, leading_chars)
    found = find_excerpt(text, asked, EXCERPT_CHARS)
    path = text.partition(" · ")[0]
    return found if memory.kind is not Kind.CODE or found.startswith(path) else f"{path}: {found}"
