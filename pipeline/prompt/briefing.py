"""Briefing: the memories that an agent is shown before it answers a message.

One search finds the memories about a message. The state of the work is added on request. If nothing is relevant,
nothing is shown.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from sqlite3 import Connection
from typing import Any

from config.settings import Settings
from pipeline.features.lessons.search import find_lessons_for
from pipeline.kernel.enums import UNFINISHED
from pipeline.kernel.kinds import is_indexed
from pipeline.kernel.records import Filter, Kind, Memory, Viewer
from pipeline.kernel.records.hooks import AgentSession, LeftOut
from pipeline.kernel.records.recall import NOTHING, Answer, Hit, Query
from pipeline.kernel.registry import collect
from pipeline.kernel.store import agent_sessions, memories
from pipeline.kernel.store.database import Database
from pipeline.kernel.store.impressions import Impression
from pipeline.kernel.times import utc_text
from pipeline.kernel.workspace import Workspace
from pipeline.prompt.code_names import asks_about_code
from pipeline.prompt.follow_up import LastMessages, continue_last
from pipeline.prompt.line import (
    BELOW_BAR,
    BLOCK_CHARS,
    DUPLICATE,
    IN_RULE_FILE,
    MOST,
    REPLACED,
    Budget,
    Filled,
    Key,
    Line,
    LineSource,
    describe_left_out,
    fill,
)
from pipeline.prompt.render import SHOWN_EACH, Entry, is_rule, leave_out_rules_of_groups, list_shown_unasked, once
from pipeline.prompt.sources.memories import LessonHit, LineOptions, leave_out, list_memory_lines, make_line
from pipeline.prompt.start.open_work import LATELY, summarize_sessions_asked_for
from pipeline.recall.annotations import find_annotations
from pipeline.recall.contexts import SearchContexts
from pipeline.recall.deadline import Deadline
from pipeline.recall.query import asks_progress
from pipeline.recall.query_scores import QueryScores
from pipeline.recall.relevance import NEARLY_RELEVANT, OUTLINE_RELEVANT, RELEVANT
from pipeline.recall.search import search
from pipeline.recall.search_context import SearchContext

CONSIDERED = 40
UNDER_WAY = (Kind.ACTIVITY, Kind.EPISODE, Kind.MILESTONE)
# Number of latest memories that are searched for recent activity: an import may add memories of long ago.
LAST_WRITTEN = 50
# Share of a hook's time for recall; the rest is for the work before and after it.
RECALL_SHARE = 0.75
# The sources of what an answer lists by its use.
RESULTS = frozenset({LineSource.RULE, LineSource.MEMORY, LineSource.IMPORT})


@dataclass(frozen=True, slots=True)
class BriefingLimits:
    """The deadline of recall in milliseconds, the longest text in characters, and whether imports may be shown."""

    budget_ms: int
    max_chars: int
    shows_imports: bool = True


@dataclass(frozen=True, slots=True)
class Briefing:
    """The memories about a message, by type; all empty if there are none.

    `text` is for the agent: the last sessions on request, and the chosen `lines`. It begins with `start`, the text of a
    session's start, if there is one. `shown` and `person_shown` are the memories in the text, `lessons` its lessons and
    `impressions` their impressions. `person` contains results from the personal store, `team` those of teams. If
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
    active_arcs: tuple[Any, ...] = ()
    text: str = ""
    shown: tuple[Memory, ...] = ()
    impressions: tuple[Impression, ...] = ()
    person: tuple[Hit, ...] = ()
    person_shown: tuple[Memory, ...] = ()
    team: tuple[Hit, ...] = ()
    is_stored: bool = False
    start: str = ""
    lines: tuple[Line, ...] = field(default=(), compare=False)
    left_out: tuple[LeftOut, ...] = field(default=(), compare=False)


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
    return Query(message, CONSIDERED, Filter(viewer=viewer), budget_ms, min_relevance=NEARLY_RELEVANT)


@dataclass(frozen=True, slots=True)
class _Found:
    """The results for a message from the workspace and from the personal store, and those that a rule file repeats."""

    hits: tuple[Hit, ...]
    person: tuple[Hit, ...]
    repeated: tuple[Line, ...]
    answer: Answer
    deadline: Deadline


def compose_briefing(
    readable: Readable,
    session: AgentSession,
    message: str,
    limits: BriefingLimits,
    now: datetime,
    *,
    only_new: bool = False,
    last: LastMessages | None = None,
    others: Iterable[Line] = (),
) -> Briefing:
    """Choose the lines for a message; `only_new` skips what the agent has seen in its session.

    `last` has the messages before it, and gets this one. `others` are lines of other sources, read after the search.
    """
    deadline = Deadline(limits.budget_ms)
    found = _find(readable, session, message_query(message, session.viewer, limits.budget_ms), deadline, last)
    options = LineOptions(deadline, now, limits.shows_imports, asks_about_code(message))
    person = _list_person_lines(found.person, now)
    lines = [*found.repeated, *others, *person]
    budget = Budget(min(limits.max_chars, BLOCK_CHARS), MOST if options.asks_imports else 1)
    shown = set[Key]()
    if only_new and readable.person is not None and (found.person or readable.workspace is None):
        with readable.person.database.read() as db:
            shown |= read_shown(db, session, person if readable.workspace is not None else lines)
    if readable.workspace is None:
        return _describe(fill(lines, budget, shown), found)
    with readable.workspace.database.read() as db:
        work = _Work.read(db, session, message, now) if asks_progress(message) else _Work()
        lines += [work.mark(line) for line in list_memory_lines(db, session, message, found.hits, options)]
        lines += work.make_lines(db, now)
        shown |= read_shown(db, session, lines) if only_new else set()
        text = "\n".join(work.summaries)
        filled = fill(lines, replace(budget, chars=budget.chars - len(text) - bool(text)), shown)
        briefing = _describe(filled, found, text)
        is_listed = briefing.relevant and (work.is_asked or not only_new)
        return _add_work(db, session, briefing, filled, now) if is_listed else briefing


def read_shown(db: Connection, session: AgentSession, lines: Iterable[Line]) -> set[Key]:
    """Return the keys of lines that an agent has seen in its session."""
    seqs = [line.key[0] for line in lines if line.reason is None]
    if session.id is None or not seqs:
        return set()
    return set(agent_sessions.list_seen_versions(db, session.id, session.agent_id or "", seqs).items())


def _find(
    readable: Readable, session: AgentSession, query: Query, deadline: Deadline, last: LastMessages | None
) -> _Found:
    """Search the workspace and the personal store."""
    answer, person = Answer((), {}, 0.0), tuple[Hit, ...]()
    if readable.workspace is not None:
        answer = _search_with_lessons(readable.workspace, query, deadline)
        if last is not None:
            answer = continue_last(readable.workspace, session, query, answer, last, deadline)
    if readable.person is not None:
        about = replace(query, filter=replace(query.filter, scope=session.viewer.personal))
        person = search(readable.person, about, deadline).hits
    kept_person, kept = leave_out_rules_of_groups(readable.databases, (person, answer.hits))
    shown = {id(hit) for hit in (*kept_person, *kept)}
    repeated = tuple(
        leave_out(hit, IN_RULE_FILE)
        for hit in (*person, *answer.hits)
        if hit.memory.may_be_injected and id(hit) not in shown
    )
    return _Found(kept, kept_person, repeated, answer, deadline)


def _search_with_lessons(context: SearchContext, query: Query, deadline: Deadline) -> Answer:
    """Return the memories about a message; of the lessons, only those that apply to it."""
    scores = QueryScores()
    answer = search(context, query, deadline, scores)
    # The bar of outlines is higher than that of the query.
    others = [
        hit
        for hit in answer.hits
        if hit.memory.kind is not Kind.LESSON
        and (hit.memory.kind is not Kind.CODE or hit.relevance >= OUTLINE_RELEVANT)
    ]
    lessons = find_lessons_for(context, query.filter.viewer, query.text, query.budget_ms, deadline, scores)
    return replace(answer, hits=(*lessons, *others))


def _list_person_lines(hits: Sequence[Hit], now: datetime) -> list[Line]:
    return [
        leave_out(hit, REPLACED, LineSource.PERSON)
        if hit.annotations.superseded_by is not None
        else leave_out(hit, BELOW_BAR, LineSource.PERSON)
        if hit.relevance < RELEVANT
        else make_line(LineSource.PERSON, hit, Entry(hit.memory, hit.annotations, of_person=True), now)
        for hit in hits
    ]


@dataclass(frozen=True, slots=True)
class _Work:
    """The state of the work for a message that asks about progress."""

    is_asked: bool = False
    summaries: Sequence[str] = ()
    summarized: frozenset[str] = frozenset()
    current: Sequence[Memory] = ()

    @classmethod
    def read(cls, db: Connection, session: AgentSession, message: str, now: datetime) -> "_Work":
        summaries, summarized = summarize_sessions_asked_for(db, session, message, now)
        return cls(True, summaries, summarized, [*_list_goals(db, session), *_list_activity(db, session, now)])

    def mark(self, line: Line) -> Line:
        """Leave out the line of what the summaries of sessions already say."""
        is_said = line.hit is not None and self._is_summarized(line.hit.memory)
        return replace(line, reason=line.reason or DUPLICATE) if is_said else line

    def make_lines(self, db: Connection, now: datetime) -> list[Line]:
        """Return lines for the open goals and the recent activity."""
        current = [memory for memory in self.current if not self._is_summarized(memory)]
        remarks = find_annotations(db, current) if current else {}
        hits = [Hit(memory, 0.0, RELEVANT, annotations=remarks.get(memory.seq, NOTHING)) for memory in current]
        return [make_line(LineSource.WORK, hit, Entry(hit.memory, hit.annotations), now) for hit in hits]

    def _is_summarized(self, memory: Memory) -> bool:
        # The summaries replace the project's history.
        is_past = memory.kind in UNDER_WAY and (memory.session_id in self.summarized or is_indexed(memory))
        return bool(self.summarized) and is_past


def _describe(filled: Filled, found: _Found, opening: str = "") -> Briefing:
    """Return the memories of chosen lines by their use, below an opening text."""
    made = [Hit(memory, 1.0, RELEVANT) for line in filled.chosen for memory in line.memories]
    about = group_by_use([*made, *_list_hits(filled.chosen, RESULTS)])
    person = _list_hits(filled.chosen, {LineSource.PERSON})
    own = [*_list_hits(filled.chosen, RESULTS | {LineSource.WORK}), *made]
    return Briefing(
        relevant=bool(filled.chosen or opening),
        degraded=found.answer.degraded or bool(found.deadline.late),
        lessons=tuple(hit for hit in about["lessons"] if isinstance(hit, LessonHit)),
        decisions=tuple(about["decisions"]),
        facts=tuple(about["facts"]),
        memories=tuple(about["memories"]),
        text="\n".join(filter(None, (opening, filled.text))),
        shown=tuple(hit.memory for hit in own),
        impressions=tuple(line.impression for line in filled.chosen if line.impression is not None),
        person=tuple(person),
        person_shown=tuple(hit.memory for hit in person),
        team=tuple(_list_hits(filled.chosen, {LineSource.TEAM})),
        is_stored=found.answer.is_stored,
        lines=filled.chosen,
        left_out=tuple(describe_left_out(filled.left_out)),
    )


def _list_hits(lines: Iterable[Line], sources: Container[LineSource]) -> list[Hit]:
    return [line.hit for line in lines if line.hit is not None and line.source in sources]


def _add_work(db: Connection, session: AgentSession, briefing: Briefing, filled: Filled, now: datetime) -> Briefing:
    """Add the open goals, first those that the message is about, the recent activity, and the active arcs."""
    hits = _list_hits(filled.chosen, RESULTS)
    open_goals = [*(hit.memory for hit in group_by_use(hits)["goals"]), *_list_goals(db, session)]
    threads = collect("list_threads_of", db, session.viewer, [hit.memory.seq for hit in hits], SHOWN_EACH)
    return replace(
        briefing,
        open_goals=tuple(once(open_goals)[:SHOWN_EACH]),
        recent_activity=tuple(_list_activity(db, session, now)),
        active_arcs=tuple(thread for thread in threads if not thread.is_outline),
    )


def _list_goals(db: Connection, session: AgentSession) -> list[Memory]:
    return list_shown_unasked(collect("list_unfinished", db, session.viewer, SHOWN_EACH))


def _list_activity(db: Connection, session: AgentSession, now: datetime) -> list[Memory]:
    """List recent activity, latest first."""
    since, under_way = utc_text(now - LATELY), Filter(kinds=UNDER_WAY, viewer=session.viewer)
    return list_shown_unasked(memories.list_latest_happened(db, under_way, since, SHOWN_EACH, LAST_WRITTEN))


def group_by_use(hits: Iterable[Hit]) -> Mapping[str, list[Hit]]:
    """Return results by the part of a briefing that lists them, each in their order; `goals` are unfinished."""
    groups = defaultdict[str, list[Hit]](list)
    for hit in hits:
        groups[_find_use(hit.memory)].append(hit)
    return groups


def _find_use(memory: Memory) -> str:
    if is_rule(memory):
        return "lessons"
    if memory.kind is Kind.GOAL and memory.details.get("status", "open") in UNFINISHED:
        return "goals"
    return {Kind.DECISION: "decisions", Kind.KEYED_FACT: "facts"}.get(memory.kind, "memories")
