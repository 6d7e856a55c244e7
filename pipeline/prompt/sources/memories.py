"""Lines for memories: rules, code that the message names, and the best of the other results."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from sqlite3 import Connection

from pipeline.features.lessons.advice import LOOKED_AT, Touched, lessons_about, read_actions, read_message
from pipeline.features.lessons.prohibitions import is_about_to_break
from pipeline.kernel.kinds import is_indexed, is_said, render_text
from pipeline.kernel.records import Filter, Kind, Memory, Source, Viewer
from pipeline.kernel.records.hooks import AgentSession
from pipeline.kernel.records.recall import Hit, Step
from pipeline.kernel.store import agent_sessions, ingested, memories
from pipeline.kernel.store.impressions import make_impressions
from pipeline.prompt.code_names import defines, read_code_names
from pipeline.prompt.line import (
    BELOW_BAR,
    IMPORTS_OFF,
    NOT_FOLLOWED,
    REPLACED,
    WEAKER,
    Line,
    LineSource,
)
from pipeline.prompt.render import (
    Entry,
    Usefulness,
    describe_record,
    drop_dead,
    drop_seen,
    is_critical,
    is_rule,
    list_shown_unasked,
    once,
    render_line,
    version_of,
    with_records,
)
from pipeline.recall.annotations import drop_superseded
from pipeline.recall.deadline import Deadline
from pipeline.recall.relevance import OUTLINE_RELEVANT, RELEVANT, calibrate
from pipeline.recall.result_order import put_said_first
from pipeline.text.excerpts import CUT, find_excerpt, find_news
from pipeline.text.tokens import search_tokens

EXCERPT_CHARS = 200
# The best result is shown nearly completely, if it is short enough to be about one thing, such as a commit message.
LEADING_TEXT_CHARS = 1600
TOLD_SHARE_OF_BEST = 0.7
# Indexed code needs a higher score, because all files of a project are slightly relevant: in addition to named code,
# show only hits as good as the best, and from the history only hits that are certainly relevant.
CODE_TOLD = 3
NEAR_NAMED_SHARE = 0.95
COMMIT_RELEVANCE = calibrate(0.9)
# Of a document, if the message does not ask about documents.
IMPORT_RELEVANCE = calibrate(0.85)
HISTORY = "history"
# Maximum number of files with the same name in different folders.
FILES_A_NAME = 2
# Maximum number of lessons about targets in the message and about the session's last actions, added to those of recall.
NAMED_LESSONS = 2
LIKELY_LESSONS = 1
RECENT_ACTIONS = 8


@dataclass(frozen=True, slots=True)
class LessonHit(Hit):
    """A lesson that an agent is shown, with the id of its impression, which its answer refers to."""

    impression_id: str = ""


@dataclass(frozen=True, slots=True)
class LineOptions:
    """How the lines of a message are made, and whether imports are shown and asked."""

    deadline: Deadline
    now: datetime
    shows_imports: bool = True
    asks_imports: bool = False


def choose_lines(hits: Sequence[Hit], named: Sequence[Hit], message: str) -> list[Hit]:
    """Return the rules, then the code that a message names, then the best other hits; each file once.

    The user's own words come before commits and outlines about the same thing, which are longer and more numerous.
    """
    hits = [hit for hit in hits if hit.annotations.superseded_by is None]
    best = max((hit.score for hit in hits), default=0.0)
    # An identifier puts its memory first, but says nothing against the other memories about the message.
    sources = [_source_of(hit.memory) for hit in hits]
    matches = [hit.score - hit.literal_score for hit in hits]
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
    unnamed = [*others, *list(code.values())[len(named) :]]
    ordered = sorted(unnamed, key=lambda hit: hit.score, reverse=True)
    return [*rules, *named, *put_said_first(ordered, message)]


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


def list_memory_lines(
    db: Connection, session: AgentSession, message: str, found: Sequence[Hit], options: LineOptions
) -> list[Line]:
    """Return lines for the results of a message: those to show first, then the others with their reasons."""
    allowed = [hit for hit in found if options.shows_imports or not is_import(hit.memory)]
    hits = [hit for hit in allowed if hit.relevance >= _bar_of(hit.memory, options)]
    alive, named = hits, list[Hit]()
    if not options.deadline.must_skip(Step.NAMED):
        alive = _add_named_lessons(db, session, message, hits)
        named = find_named_code(db, session.viewer, message, hits) if options.shows_imports else []
    alive = _drop_dead_lessons(db, alive)
    chosen = choose_lines(alive, named, message)
    rules = [hit for hit in chosen if is_rule(hit.memory)]
    lines = list(_list_rule_lines(db, session, rules, message, options))
    asked = frozenset(search_tokens(message))
    lines += [_make_memory_line(hit, asked, message, options) for hit in chosen if hit not in rules]
    known = _seqs(chosen)
    reasons = dict.fromkeys(_seqs(found), IMPORTS_OFF) | dict.fromkeys(_seqs(allowed), BELOW_BAR)
    reasons |= dict.fromkeys(_seqs(hits), NOT_FOLLOWED) | dict.fromkeys(_seqs(alive), WEAKER)
    reasons |= dict.fromkeys(_seqs([hit for hit in found if hit.annotations.superseded_by]), REPLACED)
    return lines + [leave_out(hit, reasons[hit.memory.seq]) for hit in found if hit.memory.seq not in known]


def leave_out(hit: Hit, reason: str, source: LineSource | None = None) -> Line:
    """Return the line of a result that is left out for a reason."""
    memory = hit.memory
    source = source or (LineSource.RULE if is_rule(memory) else _source_of_line(memory))
    key = memory.seq, ""
    return Line(key, source, memory.kind, memory.content, hit.score, relevance=hit.relevance, hit=hit, reason=reason)


def make_line(
    source: LineSource, hit: Hit, entry: Entry, now: datetime, longer: Callable[[int | None], str] | None = None
) -> Line:
    """Return the line of a memory."""
    memory = hit.memory
    return Line(
        (memory.seq, version_of(memory)),
        source,
        memory.kind,
        memory.content,
        hit.score,
        "" if longer is not None else render_line(entry, now),
        entry.header,
        hit.relevance,
        hit,
        turn=memory.metadata.get("turn"),
        longer=longer,
    )


def _seqs(hits: Sequence[Hit]) -> set[int]:
    return {hit.memory.seq for hit in hits}


def is_import(memory: Memory) -> bool:
    """Return whether a memory was imported, from a document or from another program."""
    return memory.source is Source.IMPORT and memory.said_by is None


def is_document(memory: Memory) -> bool:
    """Return whether a memory was read from a document, from code or from a history."""
    return is_import(memory) and (memory.kind is Kind.DOCUMENT or is_indexed(memory))


def _source_of_line(memory: Memory) -> LineSource:
    return LineSource.IMPORT if is_document(memory) else LineSource.MEMORY


def _bar_of(memory: Memory, options: LineOptions) -> float:
    if memory.kind is Kind.CODE:
        return OUTLINE_RELEVANT
    return IMPORT_RELEVANCE if is_document(memory) and not options.asks_imports else RELEVANT


def _list_rule_lines(
    db: Connection, session: AgentSession, rules: Sequence[Hit], message: str, options: LineOptions
) -> Iterator[Line]:
    """Yield a line for each rule, with an impression."""
    records = {record.memory.seq: record for record in with_records(db, [hit.memory for hit in rules])}
    # Critical and useful rules come first; their scores do not count.
    for score, hit in zip(range(len(rules), 0, -1), rules, strict=True):
        record = records[hit.memory.seq]
        (impression,) = make_impressions([hit.memory], session.id, session.agent_id)
        lesson = LessonHit(
            hit.memory, hit.score, hit.relevance, hit.signals, hit.annotations, impression_id=impression.id
        )
        entry = Entry(hit.memory, hit.annotations, impression.id, record=describe_record(record))
        line = make_line(LineSource.RULE, lesson, entry, options.now)
        again = is_about_to_break(render_text(hit.memory), message)
        yield replace(line, score=float(score), impression=impression, again=again)


def _make_memory_line(hit: Hit, asked: frozenset[str], message: str, options: LineOptions) -> Line:
    def lengthen(chars: int | None) -> str:
        return render_line(replace(entry, excerpt=_excerpt(hit.memory, asked, options.deadline, chars)), options.now)

    entry, source = Entry(hit.memory, hit.annotations), _source_of_line(hit.memory)
    again = source is LineSource.MEMORY and is_about_to_break(hit.memory.content, message)
    return replace(make_line(source, hit, entry, options.now, lengthen), again=again)


def _drop_dead_lessons(db: Connection, hits: Sequence[Hit]) -> list[Hit]:
    """Drop lessons that agents ignore; put critical and useful lessons first."""
    lessons = [hit for hit in hits if is_rule(hit.memory)]
    worth = {
        record.memory.seq: (is_critical(record.memory), record.usefulness is Usefulness.USEFUL)
        for record in with_records(db, [hit.memory for hit in lessons])
        if record.usefulness is not Usefulness.DEAD
    }
    alive = sorted(
        (hit for hit in lessons if hit.memory.seq in worth), key=lambda hit: worth[hit.memory.seq], reverse=True
    )
    return [*alive, *(hit for hit in hits if not is_rule(hit.memory))]


def _add_named_lessons(db: Connection, session: AgentSession, message: str, hits: Sequence[Hit]) -> list[Hit]:
    """Put first the lessons about targets in the message and, if anything is relevant, about the last actions."""
    named = _list_alive(db, read_message(message), session.viewer)[:NAMED_LESSONS]
    if session.id is not None and (named or hits):
        did = agent_sessions.page_actions(db, session.id, RECENT_ACTIONS, None)
        # Prefer lessons that were not shown yet.
        likely = drop_seen(db, session, _list_alive(db, read_actions(did), session.viewer))
        named = once([*named, *likely[:LIKELY_LESSONS]])
    known = _seqs(hits)
    return [*(Hit(lesson, 0.0, RELEVANT) for lesson in named if lesson.seq not in known), *hits]


def _list_alive(db: Connection, touched: Touched, viewer: Viewer) -> list[Memory]:
    return drop_dead(db, drop_superseded(db, list_shown_unasked(lessons_about(db, touched, viewer, LOOKED_AT))))


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
