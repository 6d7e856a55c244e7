"""The arcs job: detect the narrative threads of each scope, and keep their ids as they grow, merge and split.

The threads of a scope depend on its memories alone. Stored arcs only decide which ids the threads continue. A run
detects all threads first and then writes one arc per transaction; the next run completes an interrupted one. In a large
scope only the newest memories are examined. Older members stay with their arc, and an arc without new members becomes
dormant.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import timedelta

from pipeline.features.arcs import store, text as arc_text
from pipeline.features.arcs.graph import (
    UNCHARACTERISTIC,
    Vectors,
    drop_strays,
    find_clusters,
    list_terms,
    measure_strengths,
    tie_strands,
)
from pipeline.features.entities import store as entities
from pipeline.kernel.job_runs import JobRun, Report
from pipeline.kernel.records import Kind, Scope
from pipeline.kernel.store import meta
from pipeline.kernel.times import parse
from pipeline.text.memory_terms import NAMED_KINDS, drop_derived_tags

NEWEST = 20_000
PAGE = 2_000
LEAST_MEMBERS = 3
# A cluster within one session is a thread only if it has at least this many members.
LONG = 6
LASTING = timedelta(days=1)
CHATTER_IMPORTANCE = 0.2
# The text of an arc is taken from its latest members.
TOLD_MEMBERS = 100
# The last scope that a paused run completed.
PAUSED_AFTER = "arcs_paused_after"


@dataclass(frozen=True, slots=True)
class Change:
    """An arc to store in place of a row, to add (`row` None), or to delete (`arc` None)."""

    row: int | None
    arc: store.Arc | None


@dataclass(frozen=True, slots=True)
class _View:
    """The part of a scope that a run examines: memories in order of time, and the times of stored members by row
    number.

    Members below row number `since` are older than the examined memories.
    """

    strands: Sequence[store.Strand]
    mentions: Sequence[tuple[int, int]]
    stored: Sequence[store.StoredArc]
    moments: Mapping[int, str]
    since: int


@dataclass(frozen=True, slots=True)
class _Threads:
    """The threads of a view, in order of time; the strength of each member; the number of memories with each term."""

    members: Sequence[Sequence[store.Strand]]
    strength: Mapping[int, float]
    spread: Mapping[str, int]


def arcs(job: JobRun, vectors: Vectors | None = None, newest: int = NEWEST) -> Report:
    """Update the arcs of every scope; `vectors` returns passages of memories, if there are any."""
    job.counts.update(memories=0, created=0, updated=0, dropped=0)
    with job.database.read() as db:
        scopes = store.scopes(db, job.at, LEAST_MEMBERS)
        paused_after = meta.get(db, PAUSED_AFTER)
    names = [_name(scope) for scope in scopes]
    begin = sum(name <= paused_after for name in names) if paused_after is not None else 0
    skipped = False
    for done in range(begin, len(scopes)):
        job.progress(done, len(scopes))
        outcome = None if job.pausing() else _refresh(job, scopes[done], vectors, newest)
        if outcome is None:
            if done > begin:
                _note(job, names[done - 1])
            return job.report(more=True)
        skipped |= not outcome
    if paused_after is not None:
        _note(job, None)
    return job.report(more=skipped)


def is_thread(members: Sequence[store.Strand]) -> bool:
    """Tell whether related memories, in order of time, make a thread that a person would follow."""
    if len(members) < LEAST_MEMBERS:
        return False
    sessions = {member.session_id for member in members} - {None}
    lasts = parse(members[-1].occurred_at) - parse(members[0].occurred_at) >= LASTING
    return lasts or len(sessions) > 1 or len(members) >= LONG


def _refresh(job: JobRun, scope: Scope, vectors: Vectors | None, newest: int) -> bool | None:
    """Update one scope; return None when asked to pause, False if a memory changed during the run."""
    view = _read_view(job, scope, newest)
    threads = None if view is None else _threads(job, view, vectors)
    if view is None or threads is None:
        return None
    job.counts["memories"] += len(view.strands)
    whole = True
    for change in _changes(job, scope, view, threads):
        if job.pausing():
            return None
        with job.database.write() as db:
            if change.arc is not None:
                done = store.put(db, change.row, change.arc, job.at)
            else:
                assert change.row is not None
                store.drop(db, change.row)
                done = True
        whole &= done
        if done:
            job.counts["dropped" if change.arc is None else "created" if change.row is None else "updated"] += 1
    return whole


def _read_view(job: JobRun, scope: Scope, newest: int) -> _View | None:
    strands: list[store.Strand] = []
    mentions: list[tuple[int, int]] = []
    seen, before = 0, 2**62
    while seen < newest:
        if job.pausing():
            return None
        with job.database.read() as db:
            page = store.strands(db, scope, job.at, min(PAGE, newest - seen), before)
            seqs = [strand.seq for strand in page]
            mentions += entities.list_mentions(db, seqs, UNCHARACTERISTIC)
            names = entities.list_mentioned_names(db, seqs, NAMED_KINDS)
        if not page:
            break
        seen, before = seen + len(page), page[-1].seq
        strands += (
            _drop_derived(strand, names)
            for strand in page
            if strand.kind is not Kind.EPISODE or strand.importance >= CHATTER_IMPORTANCE
        )
    with job.database.read() as db:
        stored = store.of_scope(db, scope)
        moments = store.moments(db, (seq for arc in stored for seq in arc.arc.members), job.at)
    strands.sort(key=lambda strand: (strand.occurred_at, strand.seq))
    return _View(strands, mentions, stored, moments, before if seen >= newest else 0)


def _drop_derived(strand: store.Strand, names: Mapping[int, Sequence[str]]) -> store.Strand:
    """Return a strand without derived tags, because its entities already tie it to the same memories."""
    tags = drop_derived_tags(strand.tags, strand.kind, names.get(strand.seq, ()))
    return strand if tags == strand.tags else replace(strand, tags=tags)


def _threads(job: JobRun, view: _View, vectors: Vectors | None) -> _Threads | None:
    terms = [list_terms(strand) for strand in view.strands]
    graph = tie_strands(view.strands, terms, view.mentions, vectors, job.pausing)
    if graph is None or job.pausing():
        return None
    clusters = find_clusters(graph, job.pausing)
    if clusters is None:
        return None
    strength = measure_strengths(graph, clusters)
    grouped = [[view.strands[position] for position in positions] for positions in drop_strays(clusters, strength)]
    return _Threads(
        [members for members in grouped if is_thread(members)],
        {strand.seq: value for strand, value in zip(view.strands, strength, strict=True)},
        Counter(term for distinct in terms for term in distinct),
    )


def _changes(job: JobRun, scope: Scope, view: _View, threads: _Threads) -> Iterator[Change]:
    """Yield each change as soon as it is known, so that a paused run has made progress."""
    matching = succession([[member.seq for member in members] for members in threads.members], view.stored)
    claimed = {member.seq for members in threads.members for member in members}
    inherited: dict[int, list[int]] = {}
    ended = []
    for known in view.stored:
        rest = _rest(known.arc, view, claimed)
        heir = matching.heirs.get(known.seq)
        if heir is not None:
            inherited.setdefault(heir, []).extend(rest)
        if heir is None and len(rest) >= LEAST_MEMBERS:
            arc = _at_rest(job, known, rest, view, threads)
            if arc != known.arc:
                yield Change(known.seq, arc)
        elif heir is None or matching.arcs[heir] != known:
            ended.append(Change(known.seq, None))
    for number, members in enumerate(threads.members):
        before = matching.arcs[number]
        arc = _arc(job, scope, members, inherited.get(number, ()), view, threads, before)
        if before is None:
            yield Change(None, arc)
        elif before.arc != arc:
            yield Change(before.seq, arc)
    # The arcs that take over the members are written by now.
    yield from ended


def _rest(arc: store.Arc, view: _View, claimed: AbstractSet[int]) -> list[int]:
    """List the members that stay with an arc in any case, because the arc is only partly examined."""
    if all(seq >= view.since for seq in arc.members):
        return []
    return [seq for seq in arc.members if seq in view.moments and seq not in claimed]


def _arc(
    job: JobRun,
    scope: Scope,
    members: Sequence[store.Strand],
    inherited: Sequence[int],
    view: _View,
    threads: _Threads,
    before: store.StoredArc | None,
) -> store.Arc:
    at = {member.seq: member.occurred_at for member in members} | {seq: view.moments[seq] for seq in inherited}
    ordered = tuple(sorted(at, key=lambda seq: (at[seq], seq)))
    arc = store.Arc("", "", arc_text.status(members, job.now), scope, at[ordered[0]], at[ordered[-1]], ordered)
    if before is not None and before.arc.members == ordered and _still_says(before.arc, members[-TOLD_MEMBERS:]):
        return replace(arc, title=before.arc.title, summary=before.arc.summary)
    return _describe(arc, members[-TOLD_MEMBERS:], view, threads)


def _at_rest(job: JobRun, stored: store.StoredArc, seqs: Sequence[int], view: _View, threads: _Threads) -> store.Arc:
    """Return an arc with older members and no new ones: it becomes dormant, or loses members."""
    arc = stored.arc
    if len(seqs) < len(arc.members) or not arc.title:
        with job.database.read() as db:
            members = store.list_strands_by_seqs(db, seqs[-TOLD_MEMBERS:])
        first_at, last_at = view.moments[seqs[0]], view.moments[seqs[-1]]
        left = replace(arc, first_at=first_at, last_at=last_at, members=tuple(seqs))
        arc = _describe(left, members, view, threads)
    old = job.now - parse(arc.last_at) >= arc_text.STILL_ACTIVE
    return replace(arc, status=store.ArcStatus.DORMANT) if old and arc.status is store.ArcStatus.ACTIVE else arc


def _describe(arc: store.Arc, members: Sequence[store.Strand], view: _View, threads: _Threads) -> store.Arc:
    return replace(
        arc,
        title=arc_text.title(members, threads.spread, len(view.strands)),
        summary=arc_text.summary(members, threads.strength),
    )


def _still_says(arc: store.Arc, members: Sequence[store.Strand]) -> bool:
    """Return whether the members still contain every part of an arc's title and summary."""

    def is_contained(text: str, *, tags: bool) -> bool:
        return any(text in member.content or (tags and text in member.tags) for member in members)

    return (
        bool(arc.title)
        and all(
            is_contained(part.removesuffix(store.CUT), tags=True) for part in arc.title.split(store.TITLE_SEPARATOR)
        )
        and all(is_contained(line.removesuffix(store.CUT), tags=False) for line in arc.summary.split("\n"))
    )


def _name(scope: Scope) -> str:
    return f"{scope.kind}:{scope.id or ''}"


def _note(job: JobRun, name: str | None) -> None:
    with job.database.write() as db:
        if name is None:
            meta.drop(db, PAUSED_AFTER)
        else:
            meta.put(db, PAUSED_AFTER, name)


# An arc's id continues only in a thread with at least this many of its members. Writing one new arc changes nothing
# that this rule reads for another, so that completing an interrupted run gives the same ids.
LEAST_OVERLAP = 2


@dataclass(frozen=True, slots=True)
class Succession:
    """For each thread the arc that it continues, and for each arc, by row, the thread that takes its older members."""

    arcs: tuple[store.StoredArc | None, ...]
    heirs: Mapping[int, int]


def succession(threads: Sequence[Sequence[int]], stored: Sequence[store.StoredArc]) -> Succession:
    """Match threads (row numbers of memories) to arcs by their shared members, the largest share first.

    After a merge the id of the arc with the largest share continues; after a split the largest part keeps the id.
    """
    home = {seq: arc for arc in stored for seq in arc.arc.members}
    shares = Counter((number, home[seq].seq) for number, seqs in enumerate(threads) for seq in seqs if seq in home)
    rows = {arc.seq: arc for arc in stored}
    arcs: list[store.StoredArc | None] = [None] * len(threads)
    heirs: dict[int, int] = {}
    ranked = sorted(shares, key=lambda pair: (-shares[pair], pair[1], pair[0]))
    for number, arc_seq in ranked:
        if arcs[number] is None and arc_seq not in heirs and shares[number, arc_seq] >= LEAST_OVERLAP:
            arcs[number] = rows[arc_seq]
            heirs[arc_seq] = number
    # Older members of an arc that ended go to the thread that took most of it.
    for number, arc_seq in ranked:
        heirs.setdefault(arc_seq, number)
    return Succession(tuple(arcs), heirs)
