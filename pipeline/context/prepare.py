"""What an agent is told before it answers a message: everything that is known about it, or nothing.

One recall finds everything that is about the message; the store adds what is under way.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from sqlite3 import Connection

from pipeline.context.lessons import Usefulness, with_records
from pipeline.context.render import Entry, block_of, fitting
from pipeline.recall.annotations import NOTHING, find_annotations
from pipeline.recall.query import Hit, Query
from pipeline.recall.rank import RELEVANT
from pipeline.recall.search import SearchContext, search
from pipeline.records import Filter, Kind, Memory, Trust, Viewer
from pipeline.store import arcs, goals, memories
from pipeline.store.arcs import VisibleArc
from pipeline.times import utc_text
from pipeline.write.fields import Severity

CONSIDERED = 40
SHOWN_MEMORIES = 8
SHOWN_EACH = 5
UNDER_WAY = (Kind.ACTIVITY, Kind.EPISODE, Kind.MILESTONE)
LATELY = timedelta(days=14)
# So many of the last written are looked through for what happened lately: an import tells of long ago.
LAST_WRITTEN = 50
# As long as a surface id, which a lesson gets only once there is room for it.
UNTOLD = "0" * 26

Surface = Callable[[Sequence[Memory]], list[str]]
Untold = Callable[[Sequence[Memory]], Sequence[Memory]]


@dataclass(frozen=True, slots=True)
class PrepareLimits:
    """The deadline in milliseconds and the longest text in characters."""

    budget_ms: int
    max_chars: int


@dataclass(frozen=True, slots=True)
class SurfacedLesson:
    """A lesson that is put before an agent, under the id by which its answer is told."""

    hit: Hit
    surface_id: str


@dataclass(frozen=True, slots=True)
class Briefing:
    """What is about a message, by what it is; all empty when nothing is.

    `text` is what an agent reads: the lessons, then what is about the message, best first, then what is under way, as
    far as there is room. `lessons` are those that it holds.
    """

    relevant: bool = False
    lessons: tuple[SurfacedLesson, ...] = ()
    decisions: tuple[Hit, ...] = ()
    facts: tuple[Hit, ...] = ()
    open_goals: tuple[Memory, ...] = ()
    recent_activity: tuple[Memory, ...] = ()
    memories: tuple[Hit, ...] = ()
    active_arcs: tuple[VisibleArc, ...] = ()
    text: str = ""
    shown: tuple[Memory, ...] = ()


@dataclass(frozen=True, slots=True)
class _About:
    """What is about a message, best first, by what it is; `goals` are those that are not finished."""

    lessons: tuple[Hit, ...] = ()
    decisions: tuple[Hit, ...] = ()
    facts: tuple[Hit, ...] = ()
    goals: tuple[Hit, ...] = ()
    memories: tuple[Hit, ...] = ()

    def beside_lessons(self) -> list[Hit]:
        """Return everything but the lessons, best first."""
        found = (*self.decisions, *self.facts, *self.goals, *self.memories)
        return sorted(found, key=lambda hit: hit.score, reverse=True)


def query_of(message: str, viewer: Viewer, budget_ms: int) -> Query:
    """Return what is asked of recall for a message."""
    return Query(message, CONSIDERED, Filter(viewer=viewer), budget_ms, least_relevance=RELEVANT)


def prepare(
    reader: SearchContext,
    message: str,
    viewer: Viewer,
    limits: PrepareLimits,
    surface: Surface,
    now: datetime,
    untold: Untold = lambda found: found,
) -> Briefing:
    """Gather what a message calls for; `surface` notes the lessons that are shown and returns an id for each.

    What the agent was told before and still knows is not told again: `untold` leaves it out.
    """
    hits = search(reader, query_of(message, viewer, limits.budget_ms)).hits
    new = {memory.seq for memory in untold([hit.memory for hit in hits])}
    hits = tuple(hit for hit in hits if hit.memory.seq in new)
    with reader.database.read() as db:
        about = _sorted_by_use(_without_dead_lessons(db, hits))
        if about == _About():
            return Briefing()
        open_goals = _once([*(hit.memory for hit in about.goals), *goals.unfinished(db, viewer, SHOWN_EACH)])
        activity = _lately(db, viewer, now)
        remarks = find_annotations(db, [*open_goals, *activity])
        threads = arcs.active_of(db, viewer, [hit.memory.seq for hit in hits], SHOWN_EACH)
    told = Briefing(
        relevant=True,
        decisions=about.decisions,
        facts=about.facts,
        open_goals=tuple(open_goals[:SHOWN_EACH]),
        recent_activity=tuple(activity),
        memories=about.memories,
        active_arcs=tuple(threads),
    )
    beside = [Entry(hit.memory, hit.annotations) for hit in about.beside_lessons()]
    under_way = (*told.open_goals, *told.recent_activity)
    fresh = untold(_once(under_way, but=beside))
    beside += [Entry(memory, remarks.get(memory.seq, NOTHING)) for memory in fresh]
    return _with_text(told, about.lessons, beside, limits.max_chars, surface, now)


def _with_text(
    told: Briefing, rules: Sequence[Hit], beside: Sequence[Entry], room: int, surface: Surface, now: datetime
) -> Briefing:
    held = fitting([Entry(hit.memory, hit.annotations, UNTOLD) for hit in rules], room, now)
    # Only what an agent gets to read counts as shown.
    shown = [hit for hit in rules if any(entry.memory.seq == hit.memory.seq for entry in held)]
    ids = surface([hit.memory for hit in shown]) if shown else []
    lessons = tuple(SurfacedLesson(hit, surface_id) for hit, surface_id in zip(shown, ids, strict=True))
    entries = [*(Entry(one.hit.memory, one.hit.annotations, one.surface_id) for one in lessons), *beside]
    text, kept = block_of(entries, room, now)
    return replace(told, lessons=lessons, text=text or "", shown=tuple(entry.memory for entry in kept))


def _without_dead_lessons(db: Connection, hits: Sequence[Hit]) -> list[Hit]:
    """Leave out the lessons that are ignored, and put those first that cost most or are known to help."""
    lessons = [hit for hit in hits if _is_rule(hit.memory)]
    worth = {
        record.memory.seq: (_is_critical(record.memory), record.usefulness is Usefulness.USEFUL)
        for record in with_records(db, [hit.memory for hit in lessons])
        if record.usefulness is not Usefulness.DEAD
    }
    alive = sorted(
        (hit for hit in lessons if hit.memory.seq in worth), key=lambda hit: worth[hit.memory.seq], reverse=True
    )
    return [*alive, *(hit for hit in hits if not _is_rule(hit.memory))]


def _sorted_by_use(hits: Sequence[Hit]) -> _About:
    lessons, decisions, facts, unfinished, others = [], [], [], [], []
    for hit in hits:
        if _is_rule(hit.memory):
            lessons.append(hit)
        elif hit.memory.kind is Kind.DECISION:
            decisions.append(hit)
        elif hit.memory.kind is Kind.KEYED_FACT:
            facts.append(hit)
        elif hit.memory.kind is Kind.GOAL and hit.memory.details.get("status", "open") in goals.UNFINISHED:
            unfinished.append(hit)
        else:
            others.append(hit)
    return _About(
        tuple(lessons[:SHOWN_EACH]),
        tuple(decisions[:SHOWN_EACH]),
        tuple(facts[:SHOWN_EACH]),
        tuple(unfinished[:SHOWN_EACH]),
        tuple(others[:SHOWN_MEMORIES]),
    )


def _is_rule(memory: Memory) -> bool:
    # A lesson that nobody vouches for is evidence, not a rule.
    return memory.kind is Kind.LESSON and memory.trust is Trust.TRUSTED and not memory.instructs


def _is_critical(lesson: Memory) -> bool:
    return lesson.details.get("severity") == Severity.CRITICAL


def _lately(db: Connection, viewer: Viewer, now: datetime) -> list[Memory]:
    """List what happened lately, the latest first."""
    since = utc_text(now - LATELY)
    return memories.lately(db, Filter(kinds=UNDER_WAY, viewer=viewer), since, SHOWN_EACH, LAST_WRITTEN)


def _once(found: Iterable[Memory], but: Sequence[Entry] = ()) -> list[Memory]:
    told = {entry.memory.seq for entry in but}
    return list({memory.seq: memory for memory in found if memory.seq not in told}.values())
