"""Briefing: the memories that an agent is shown before it answers a message.

One recall finds the memories about a message. Current activity from the store is shown on request and at the start of a
session. If no memory is relevant, nothing is shown.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from sqlite3 import Connection

from config.settings import Settings
from pipeline.context.advice import LOOKED_AT, Touched, lessons_about, read_actions, read_message
from pipeline.context.follow_up import LastMessages, continue_last
from pipeline.context.lesson_records import (
    Lesson,
    Usefulness,
    describe_record,
    is_critical,
    is_rule,
    with_records,
)
from pipeline.context.lesson_search import find_lessons_for
from pipeline.context.open_work import LATELY, is_outline, summarize_sessions_asked_for
from pipeline.context.prompt_lines import TOLD, choose_lines, excerpt_hits, find_named_code
from pipeline.context.render import Entry, render_block
from pipeline.context.results_by_use import ResultsByUse, sort_by_use
from pipeline.context.rule_files import leave_out_rules_of_groups
from pipeline.kinds import is_indexed, render_text
from pipeline.recall.annotations import drop_superseded, find_annotations
from pipeline.recall.contexts import SearchContexts
from pipeline.recall.deadline import Deadline
from pipeline.recall.query import asks_progress
from pipeline.recall.query_scores import QueryScores
from pipeline.recall.relevance import OUTLINE_RELEVANT, RELEVANT
from pipeline.recall.search import search
from pipeline.recall.search_context import SearchContext
from pipeline.records import Filter, Kind, Memory, Viewer
from pipeline.records.hooks import AgentSession
from pipeline.records.recall import NOTHING, Answer, Hit, Query, Step
from pipeline.store import agent_sessions, arcs, goals, memories
from pipeline.store.arcs import VisibleArc
from pipeline.store.database import Database
from pipeline.store.impressions import Impression, make_impressions
from pipeline.times import utc_text
from pipeline.workspace import Workspace

CONSIDERED = 40
# Maximum number of personal memories.
PERSON_TOLD = 3
MESSAGE_CHARS = 1200
SHOWN_EACH = 5
UNDER_WAY = (Kind.ACTIVITY, Kind.EPISODE, Kind.MILESTONE)
# Number of latest memories that are searched for recent activity: an import may add memories of long ago.
LAST_WRITTEN = 50
# Share of a hook's time for recall; the rest is for the work before and after it.
RECALL_SHARE = 0.75
# Maximum number of lessons about targets in the message and about the session's last actions, added to those of recall.
NAMED_LESSONS = 2
LIKELY_LESSONS = 1
RECENT_ACTIONS = 8


@dataclass(frozen=True, slots=True)
class BriefingLimits:
    """The deadline of recall in milliseconds and the longest text in characters.

    Of the text, `reserved` characters are only for rules: the caller adds something else below them, such as the
    messages of the turns in `said`. Then there are at most `lines` memories, and none that was made of these turns.
    """

    budget_ms: int
    max_chars: int
    reserved: int = 0
    lines: int = TOLD
    said: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class LessonHit(Hit):
    """A lesson that an agent is shown, with the id of its impression, which its answer refers to."""

    impression_id: str = ""


@dataclass(frozen=True, slots=True)
class Briefing:
    """The memories about a message, by type; all empty if there are none.

    `text` is for the agent: the last sessions on request, lessons, results, best first, and current activity on
    request, as far as they fit. It begins with `start`, the text of a session's start, if there is one.
    `shown` and `person_shown` are the memories in the text, `lessons` its lessons and `impressions` their impressions.
    `person` contains results from the personal store. If
    `degraded`, a channel failed and results may be missing. `is_stored`: recall read a stored answer.
    """

    relevant: bool = False
    degraded: bool = False
    lessons: tuple[LessonHit, ...] = ()
    decisions: tuple[Hit, ...] = ()
    facts: tuple[Hit, ...] = ()
    open_goals: tuple[Memory, ...] = ()
    recent_activity: tuple[Memory, ...] = ()
    memories: tuple[Hit, ...] = ()
    active_arcs: tuple[VisibleArc, ...] = ()
    text: str = ""
    shown: tuple[Memory, ...] = ()
    impressions: tuple[Impression, ...] = ()
    person: tuple[Hit, ...] = ()
    person_shown: tuple[Memory, ...] = ()
    is_stored: bool = False
    start: str = ""


@dataclass(frozen=True, slots=True)
class Readable:
    """The stores that a briefing reads: a workspace, None if it does not exist yet, and the personal store."""

    workspace: SearchContext | None
    person: SearchContext | None = None

    @property
    def databases(self) -> list[Database]:
        """Return the databases of the stores."""
        return [store.database for store in (self.workspace, self.person) if store is not None]


def find_readable(workspace: Workspace, contexts: SearchContexts) -> Readable:
    """Return the stores that a briefing of a workspace reads."""
    person = workspace.personal_store
    return Readable(
        contexts.get(workspace) if workspace.exists else None,
        contexts.get(person) if person is not None else None,
    )


def hook_recall_budget_ms(settings: Settings) -> int:
    """Return the time limit of recall in milliseconds, so that the hook answers within its own limit."""
    return max(1, int(settings.hook_budget_ms * RECALL_SHARE))


def message_query(message: str, viewer: Viewer, budget_ms: int) -> Query:
    """Return the recall query for a message."""
    return Query(message, CONSIDERED, Filter(viewer=viewer), budget_ms, min_relevance=min(RELEVANT, OUTLINE_RELEVANT))


def compose_briefing(
    readable: Readable,
    session: AgentSession,
    message: str,
    limits: BriefingLimits,
    now: datetime,
    *,
    only_new: bool = False,
    last: LastMessages | None = None,
) -> Briefing:
    """Gather the memories for a message; `only_new` skips memories that the agent has seen in its session.

    `last` has the messages before it, and gets this one.
    """
    query, deadline = message_query(message, session.viewer, limits.budget_ms), Deadline(limits.budget_ms)
    context = readable.workspace
    answer = Answer((), {}, 0.0) if context is None else _search_with_lessons(context, query, deadline)
    if context is not None and last is not None:
        answer = continue_last(context, session, query, answer, last, deadline)
    person = _find_of_person(readable.person, session, query, deadline, only_new=only_new)
    person, found = leave_out_rules_of_groups(readable.databases, (person, answer.hits))
    if context is None:
        return _render(Briefing(bool(person), bool(deadline.late), person=person), session, (), (), limits, now)
    with context.database.read() as db:
        hits = _choose(db, session, message, found, deadline, limits)
        if only_new:
            hits = _drop_seen_hits(db, session, hits)
        if not (hits or person or asks_progress(message)):
            return Briefing(degraded=answer.degraded or bool(deadline.late), is_stored=answer.is_stored)
        known, about, current = _gather(db, session, message, hits, now, lists_work=not only_new)
        beside = excerpt_hits(about.beside_lessons(), message, deadline, leads=not limits.reserved)
        under_way = once(current, but=beside)
        beside += _annotate(db, drop_seen(db, session, under_way) if only_new else under_way)
        rules = _with_records(db, about.lessons)
    known = replace(known, degraded=answer.degraded or bool(deadline.late), person=person, is_stored=answer.is_stored)
    if not (rules or beside or person or known.text):
        return Briefing(degraded=known.degraded, is_stored=known.is_stored)
    return _render(known, session, rules, beside, limits, now)


def _is_summarized(memory: Memory, summarized: frozenset[str]) -> bool:
    """Return whether the summaries of sessions already say what happened; they replace the project's history."""
    return bool(summarized) and memory.kind in UNDER_WAY and (memory.session_id in summarized or is_indexed(memory))


def _search_with_lessons(context: SearchContext, query: Query, deadline: Deadline) -> Answer:
    """Return the memories about a message; of the lessons, only those that apply to it."""
    scores = QueryScores()
    answer = search(context, query, deadline, scores)
    others = [hit for hit in answer.hits if hit.memory.kind is not Kind.LESSON]
    lessons = find_lessons_for(context, query.filter.viewer, query.text, query.budget_ms, deadline, scores)
    return replace(answer, hits=(*lessons, *others))


def _gather(
    db: Connection, session: AgentSession, message: str, hits: Sequence[Hit], now: datetime, *, lists_work: bool
) -> tuple[Briefing, ResultsByUse, Sequence[Memory]]:
    """Return the results for a message with the state of the work, the results by use, and what to show unasked.

    If the message asks about progress, the text starts with the last sessions, and goals and activity are shown;
    otherwise, the state of the work is left out without `lists_work`.
    """
    summaries: list[str] = []
    summarized = frozenset[str]()
    if asks_progress(message):
        summaries, summarized = summarize_sessions_asked_for(db, session, message, now)
    hits = [hit for hit in hits if not _is_summarized(hit.memory, summarized)]
    about = sort_by_use(hits)
    text = "\n".join(summaries)
    known = Briefing(relevant=True, decisions=about.decisions, facts=about.facts, memories=about.memories, text=text)
    # Only the text reaches the agent of a hook, and the text has the state of the work on request only.
    if not (lists_work or asks_progress(message)):
        return known, about, ()
    unfinished = list_shown_unasked(goals.list_unfinished(db, session.viewer, SHOWN_EACH))
    open_goals = once([*(hit.memory for hit in about.goals), *unfinished])[:SHOWN_EACH]
    activity = list_shown_unasked(_list_recent_activity(db, session.viewer, now))
    threads = arcs.list_active_arcs_of(db, session.viewer, [hit.memory.seq for hit in hits], SHOWN_EACH)
    known = replace(
        known,
        open_goals=tuple(open_goals),
        recent_activity=tuple(activity),
        active_arcs=tuple(arc for arc in threads if not is_outline(arc)),
    )
    current = [*open_goals, *(memory for memory in activity if not _is_summarized(memory, summarized))]
    return known, about, current if asks_progress(message) else ()


def _find_of_person(
    context: SearchContext | None, session: AgentSession, query: Query, deadline: Deadline, *, only_new: bool
) -> tuple[Hit, ...]:
    """Return the few personal memories that are relevant for a message."""
    if context is None:
        return ()
    query = replace(query, filter=replace(query.filter, scope=session.viewer.personal))
    hits = search(context, query, deadline).hits
    about = [
        hit
        for hit in hits
        if hit.relevance >= RELEVANT and hit.memory.may_be_injected and hit.annotations.superseded_by is None
    ]
    if only_new and about:
        with context.database.read() as db:
            about = _drop_seen_hits(db, session, about)
    return tuple(about[:PERSON_TOLD])


def list_shown_unasked(candidates: Iterable[Memory]) -> list[Memory]:
    """Return the memories that may be shown without a request."""
    return [memory for memory in candidates if memory.may_be_injected]


def drop_seen(db: Connection, session: AgentSession, candidates: Sequence[Memory]) -> list[Memory]:
    """Return the memories whose current version the agent has not seen in its session."""
    if session.id is None or not candidates:
        return list(candidates)
    seen = agent_sessions.list_seen_versions(
        db, session.id, session.agent_id or "", [memory.seq for memory in candidates]
    )
    return [memory for memory in candidates if seen.get(memory.seq) != version_of(memory)]


def _drop_seen_hits(db: Connection, session: AgentSession, hits: Sequence[Hit]) -> list[Hit]:
    new = {memory.seq for memory in drop_seen(db, session, [hit.memory for hit in hits])}
    return [hit for hit in hits if hit.memory.seq in new]


def version_of(memory: Memory) -> str:
    """Return a fingerprint of the text of a memory as an agent reads it."""
    return hashlib.sha256(render_text(memory).encode()).hexdigest()[:16]


def _annotate(db: Connection, shown: Sequence[Memory]) -> list[Entry]:
    remarks = find_annotations(db, shown)
    return [Entry(memory, remarks.get(memory.seq, NOTHING)) for memory in shown]


def _with_records(db: Connection, hits: Sequence[Hit]) -> list[tuple[Hit, Lesson]]:
    records = {record.memory.seq: record for record in with_records(db, [hit.memory for hit in hits])}
    return [(hit, records[hit.memory.seq]) for hit in hits]


def _render(
    briefing: Briefing,
    session: AgentSession,
    lessons: Sequence[tuple[Hit, Lesson]],
    beside: Sequence[Entry],
    limits: BriefingLimits,
    now: datetime,
) -> Briefing:
    """Add the text; only memories in the text count as shown."""
    impressions = make_impressions([hit.memory for hit, _ in lessons], session.id, session.agent_id)
    rules = [
        (
            LessonHit(hit.memory, hit.score, hit.relevance, hit.signals, hit.annotations, impression_id=impression.id),
            record,
        )
        for (hit, record), impression in zip(lessons, impressions, strict=True)
    ]
    entries = [
        *(
            Entry(hit.memory, hit.annotations, hit.impression_id, record=describe_record(record))
            for hit, record in rules
        ),
        *(Entry(hit.memory, hit.annotations, of_person=True) for hit in briefing.person),
        *beside,
    ]
    opening = [briefing.text] if briefing.text else []
    text, rendered = render_block(
        entries, min(limits.max_chars, MESSAGE_CHARS) - len(briefing.text), now, limits.reserved
    )
    ids = {entry.impression_id for entry in rendered}
    return replace(
        briefing,
        lessons=tuple(hit for hit, _ in rules if hit.impression_id in ids),
        text="\n".join([*opening, *([text] if text else [])]),
        shown=tuple(entry.memory for entry in rendered if not entry.of_person),
        impressions=tuple(impression for impression in impressions if impression.id in ids),
        person_shown=tuple(entry.memory for entry in rendered if entry.of_person),
    )


def _choose(
    db: Connection, session: AgentSession, message: str, hits: Sequence[Hit], deadline: Deadline, limits: BriefingLimits
) -> list[Hit]:
    """Return the results to show, including memories that the message names and recall did not find."""
    new = (hit for hit in hits if hit.memory.metadata.get("turn") not in limits.said)
    hits = [hit for hit in new if hit.relevance >= _least_relevance(hit.memory)]
    if deadline.must_skip(Step.NAMED):
        return choose_lines(_drop_dead_lessons(db, hits), [], message, limits.lines)
    alive = _drop_dead_lessons(db, _add_named_lessons(db, session, message, hits))
    return choose_lines(alive, find_named_code(db, session.viewer, message, hits), message, limits.lines)


def _least_relevance(memory: Memory) -> float:
    return OUTLINE_RELEVANT if memory.kind is Kind.CODE else RELEVANT


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


def drop_dead(db: Connection, candidates: Sequence[Memory]) -> list[Memory]:
    """Drop the lessons that agents never follow."""
    records = with_records(db, [memory for memory in candidates if is_rule(memory)])
    dead = {record.memory.seq for record in records if record.usefulness is Usefulness.DEAD}
    return [memory for memory in candidates if memory.seq not in dead]


def _add_named_lessons(db: Connection, session: AgentSession, message: str, hits: Sequence[Hit]) -> list[Hit]:
    """Put first the lessons about targets in the message and, if anything is relevant, about the last actions."""
    named = _list_alive(db, read_message(message), session.viewer)[:NAMED_LESSONS]
    if session.id is not None and (named or hits):
        did = agent_sessions.page_actions(db, session.id, RECENT_ACTIONS, None)
        # Prefer lessons that were not shown yet.
        likely = drop_seen(db, session, _list_alive(db, read_actions(did), session.viewer))
        named = once([*named, *likely[:LIKELY_LESSONS]])
    known = {hit.memory.seq for hit in hits}
    return [*(Hit(lesson, 0.0, RELEVANT) for lesson in named if lesson.seq not in known), *hits]


def _list_alive(db: Connection, touched: Touched, viewer: Viewer) -> list[Memory]:
    return drop_dead(db, drop_superseded(db, list_shown_unasked(lessons_about(db, touched, viewer, LOOKED_AT))))


def _list_recent_activity(db: Connection, viewer: Viewer, now: datetime) -> list[Memory]:
    """List recent activity, latest first."""
    since = utc_text(now - LATELY)
    return memories.list_latest_happened(db, Filter(kinds=UNDER_WAY, viewer=viewer), since, SHOWN_EACH, LAST_WRITTEN)


def once(candidates: Iterable[Memory], but: Sequence[Entry] = ()) -> list[Memory]:
    """Return distinct memories in their order, without those in some entries."""
    known = {entry.memory.seq for entry in but}
    return list({memory.seq: memory for memory in candidates if memory.seq not in known}.values())
