"""The brief of a subagent: the rules, decisions and facts that its task needs, in a few hundred bytes."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from pipeline.features.lessons.advice import LOOKED_AT, lessons_about, read_message
from pipeline.kernel.records import Filter
from pipeline.kernel.records.hooks import AgentSession
from pipeline.kernel.records.recall import SEARCHED_CHANNELS, Hit, Query
from pipeline.kernel.store.impressions import make_impressions
from pipeline.prompt.briefing import Readable
from pipeline.prompt.render import (
    Entry,
    describe_record,
    drop_dead,
    is_rule,
    leave_out_rules_of_groups,
    list_shown_unasked,
    once,
    render_block,
    render_brief_line,
    with_records,
)
from pipeline.prompt.start.session_brief import BRIEF_KINDS, SessionBrief
from pipeline.recall.annotations import drop_superseded
from pipeline.recall.deadline import Deadline
from pipeline.recall.relevance import RELEVANT
from pipeline.recall.search import search
from pipeline.recall.search_context import SearchContext
from pipeline.text.sentences import asks_information

MOST_BYTES = 800
CONSIDERED = 40
# Only this many characters of a task are searched for.
LONGEST_TASK = 4000
# Words in the name of a role whose subagents only look something up, or plan.
_SEARCHING = frozenset(
    ("explore", "explorer", "search", "searcher", "research", "researcher", "investigator", "finder", "locator", "plan")
)
# A copy of its parent, with all that the parent was shown.
_COPY = "fork"
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def needs_brief(role: str, task: str) -> bool:
    """Return whether a subagent may change something: not one that searches, plans or answers a question."""
    words = {word.casefold() for word in _WORD.findall(role)}
    return _COPY not in words and words.isdisjoint(_SEARCHING) and not asks_information(task)


def compose_subagent_brief(
    readable: Readable, session: AgentSession, task: str, budget_ms: int, now: datetime
) -> SessionBrief | None:
    """Return the brief for a task, None if nothing is about it."""
    task, deadline = task.strip()[:LONGEST_TASK], Deadline(budget_ms)
    about = Filter(kinds=BRIEF_KINDS, viewer=session.viewer)
    of_project = _find(readable.workspace, task, about, deadline)
    of_person = _find(readable.person, task, Filter(kinds=BRIEF_KINDS, scope=session.viewer.personal), deadline)
    groups = leave_out_rules_of_groups(readable.databases, (of_project, of_person))
    entries = [
        (hit.relevance, Entry(hit.memory, hit.annotations, record=record, of_person=bool(number)))
        for number, (hits, store) in enumerate(zip(groups, (readable.workspace, readable.person), strict=True))
        if store is not None
        for hit, record in _with_records(store, hits)
    ]
    ordered = [entry for _, entry in sorted(entries, key=lambda pair: -pair[0])]
    chosen = list(_choose(ordered, now))
    text, rendered = render_block(chosen, MOST_BYTES, now, render=render_brief_line)
    if text is None:
        return None
    rules = [entry.memory for entry in rendered if entry.record is not None and not entry.of_person]
    return SessionBrief(
        text,
        tuple(entry.memory for entry in rendered if not entry.of_person),
        make_impressions(rules, session.id, session.agent_id),
        tuple(entry.memory for entry in rendered if entry.of_person),
    )


def _find(context: SearchContext | None, task: str, about: Filter, deadline: Deadline) -> list[Hit]:
    """Return the current memories by their relevance to a task, and the lessons that name its targets.

    There is no bar: a subagent cannot ask, and a rule often says nothing of the task that it is about.
    """
    if context is None or not task:
        return []
    query = Query(task, CONSIDERED, about, channels=SEARCHED_CHANNELS, min_relevance=0.0)
    hits = {hit.memory.seq: hit for hit in search(context, query, deadline).hits}
    with context.database.read() as db:
        named = lessons_about(db, read_message(task), about.viewer, LOOKED_AT) if about.scope is None else []
        for lesson in named:
            hits[lesson.seq] = Hit(lesson, 0.0, RELEVANT)
        memories = once(hit.memory for hit in hits.values())
        alive = drop_dead(db, drop_superseded(db, list_shown_unasked(memories)))
    return [hits[memory.seq] for memory in alive]


def _with_records(context: SearchContext, hits: Sequence[Hit]) -> Iterator[tuple[Hit, str | None]]:
    """Yield hits with the records of those that are rules."""
    with context.database.read() as db:
        records = with_records(db, [hit.memory for hit in hits if is_rule(hit.memory)])
    described = {record.memory.seq: describe_record(record) for record in records}
    for hit in hits:
        yield hit, described.get(hit.memory.seq)


def _choose(ordered: Sequence[Entry], now: datetime) -> Iterator[Entry]:
    """Yield the first entries that fit, each with its header."""
    left, headers = MOST_BYTES, set[str]()
    for entry in ordered:
        lines = [render_brief_line(entry, now)] + [entry.header] * (entry.header not in headers)
        size = sum(len(line.encode()) + 1 for line in lines)
        if size <= left:
            left -= size
            headers.add(entry.header)
            yield entry
