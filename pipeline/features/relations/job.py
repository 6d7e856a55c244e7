"""The edges job: find causes, contradictions and supersessions between recently changed memories and related ones.

A cursor over the change log marks the progress. It moves only after the edges up to it are written, so that the next
run completes an interrupted one and finds no edge twice. An edge only records what texts state: it archives no memory,
changes no trust, and does not return after a person erased it.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache, partial

import numpy as np

from pipeline.features.relations.replacements import (
    FOUND_CAUSE,
    GIVES_REASON,
    HEDGES,
    TROUBLE,
    find_replacements,
    first_sentences,
    stems,
    supersedes,
)
from pipeline.features.relations.reversals import find_returned, find_reversed_subjects, reverses
from pipeline.index.codes import Vector
from pipeline.index.vectors import VectorRows
from pipeline.kernel.job_runs import JobRun, Report
from pipeline.kernel.records import EdgeKind, EntityKind, Kind, Memory
from pipeline.kernel.store import changes, edges as store, meta
from pipeline.kernel.store.duplicates import EDGES_JOB
from pipeline.kernel.times import parse
from pipeline.text.similarity.pair_classifier import DENIAL_COSINE, classify_pair
from pipeline.text.similarity.pair_outcome import choose_edge

CURSOR = "edges_cursor"
PAGE = 200
SHARING = 100
SAYING = 40
BESIDE = 12
# Memories whose passages are kept during a page of changes: a few megabytes.
KEPT_PASSAGES = 4_000
# Causes are searched only for recent reports.
CAUSE_WITHIN = timedelta(days=30)
# Below this share of common words no rule finds a contradiction.
ALIKE = 0.5
# More than these in one text would be a figure of speech.
MOST_SUPERSEDED = 5
MOST_EXPLAINED = 3

REPLACING = frozenset({Kind.FACT, Kind.DECISION, Kind.MILESTONE, Kind.ACTIVITY})
REPLACEABLE = frozenset({Kind.FACT, Kind.DECISION})
EXPLAINING = frozenset({Kind.FACT, Kind.LESSON, Kind.ACTIVITY, Kind.EPISODE, Kind.DECISION, Kind.MILESTONE})
REPORTING = frozenset({Kind.FACT, Kind.ACTIVITY, Kind.EPISODE})
NAMING = frozenset({EntityKind.TICKET, EntityKind.PULL_REQUEST, EntityKind.IDENTIFIER, EntityKind.FILE})

Vectors = Callable[[Sequence[int]], VectorRows]


@dataclass(frozen=True, slots=True)
class Finding:
    """An edge that follows from two texts as they were read."""

    first: Memory
    kind: EdgeKind
    second: Memory


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The context of a memory: related memories and shared kinds of names by row number, and its session in order."""

    near: Mapping[int, Memory]
    shared: Mapping[int, frozenset[EntityKind]]
    session: Sequence[Memory]
    cosine: Callable[[Memory, Memory], float | None] = field(default=lambda _one, _other: None)


class RecentPassages:
    """The passages of memories, read for a memory and all related ones at once, and kept for the next memories."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors
        self._read: dict[int, Vector | None] = {}

    def read(self, seqs: AbstractSet[int]) -> Mapping[int, Vector | None]:
        """Return the passages of at least these memories by row number, None for memories without any."""
        unread = seqs - self._read.keys()
        if unread:
            if len(self._read) + len(unread) > KEPT_PASSAGES:
                self._read.clear()
                unread = set(seqs)
            self._read |= dict.fromkeys(unread) | self._vectors(sorted(unread)).by_memory()
        return self._read


def edges(job: JobRun, vectors: Vectors | None = None) -> Report:
    """Find the edges of memories that changed since the last run; `vectors` returns passages by row number."""
    job.counts["memories"] = 0
    while True:
        with job.database.read() as db:
            cursor = meta.get_int(db, CURSOR)
            page = store.list_changed_texts(db, cursor, PAGE)
            end = page[-1].number if page else changes.generation(db)
            seqs = sorted({change.seq for change in page if change.seq is not None})
            waiting = store.without_entities(db, seqs)
            changed = {memory.seq: memory for memory in store.list_open_to_edges(db, seqs)}
        done, seen = cursor, set[int]()
        passages = None if vectors is None else RecentPassages(vectors)
        for change in page:
            # Its entities are not extracted yet: the next run continues here.
            stuck = change.seq in waiting
            if stuck or job.pausing():
                _note(job, cursor, done)
                return job.report(more=not stuck)
            if change.seq in changed and change.seq not in seen:
                seen.add(change.seq)
                job.counts.update(_tell(job, changed[change.seq], passages))
                job.counts["memories"] += 1
                job.progress(job.counts["memories"], 0)
            done = change.number
        _note(job, cursor, end)
        if not page:
            return job.report(more=False)


def _note(job: JobRun, before: int, now: int) -> None:
    if now > before:
        with job.database.write() as db:
            meta.put(db, CURSOR, str(now))


def _tell(job: JobRun, memory: Memory, passages: RecentPassages | None) -> Counter[str]:
    """Write the edges of one memory; return the number of new ones by kind."""
    findings = list(find_edges(memory, surroundings(job, memory, passages)))
    drawn: Counter[str] = Counter()
    if not findings:
        return drawn
    with job.database.write() as db:
        for finding in findings:
            first, second = finding.first, finding.second
            now = {current.seq: current for current in store.list_open_to_edges(db, (first.seq, second.seq))}
            if any(seq not in now or now[seq].content != text for seq, text in _texts(finding)):
                # An edited text is a change itself and is examined later.
                continue
            if store.find(db, first.seq, finding.kind, second.seq, EDGES_JOB, job.at):
                changes.append(db, changes.RELATE, [first.id, second.id])
                drawn[str(finding.kind)] += 1
    return drawn


def _texts(finding: Finding) -> Iterator[tuple[int, str]]:
    return ((memory.seq, memory.content) for memory in (finding.first, finding.second))


def surroundings(job: JobRun, memory: Memory, passages: RecentPassages | None) -> Surroundings:
    """Read the context of a memory."""
    with job.database.read() as db:
        shared = store.find_sharing_name(db, memory, SHARING)
        session = store.find_session_neighbours(db, memory, BESIDE)
        near = {other.seq: other for other in (*store.list_open_to_edges(db, list(shared)), *session)}
        if memory.kind in REPLACING:
            replaced_words = [replaced.word for replaced in find_replacements(memory.content) if replaced.word]
            reversed_words = (*find_returned(memory.content), *find_reversed_subjects(memory.content))
            for word in dict.fromkeys((*replaced_words, *reversed_words)):
                near |= {other.seq: other for other in store.find_containing_word(db, memory, word, SAYING)}
    return Surroundings(near, shared, session, _cosines(passages, {memory.seq, *near}))


def _cosines(passages: RecentPassages | None, seqs: AbstractSet[int]) -> Callable[[Memory, Memory], float | None]:
    """Return the function that compares some memories; their passages are read when it is first called."""

    def cosine(first_memory: Memory, second_memory: Memory) -> float | None:
        if passages is None:
            return None
        read = passages.read(seqs)
        first, second = read.get(first_memory.seq), read.get(second_memory.seq)
        if first is None or second is None:
            return None
        alike = first @ second.T
        return float(np.minimum(alike.max(axis=0).min(), alike.max(axis=1).min()))

    return cosine


def find_edges(memory: Memory, around: Surroundings) -> Iterator[Finding]:
    """Yield the edges that follow from a memory's text and its context."""
    replacements = list(_supersessions(memory, around))
    replaced = {frozenset((finding.first.seq, finding.second.seq)) for finding in replacements}
    yield from replacements
    for finding in _contradictions(memory, around):
        # A text that states a replaced value no longer contradicts the new one.
        if frozenset((finding.first.seq, finding.second.seq)) not in replaced:
            yield finding
    yield from _causes(memory, around)


def _supersessions(memory: Memory, around: Surroundings) -> Iterator[Finding]:
    superseded = 0
    says_so = memory.kind in REPLACING and any(
        find(memory.content) for find in (find_replacements, find_returned, find_reversed_subjects)
    )
    for other in sorted(around.near.values(), key=_key_by_time, reverse=True):
        older, newer = sorted((memory, other), key=_key_by_time)
        if newer.kind not in REPLACING or older.kind not in REPLACEABLE or (newer is memory and not says_so):
            continue
        if superseded < MOST_SUPERSEDED and (
            supersedes(newer.content, older.content, partial(around.cosine, older, newer))
            or reverses(newer.content, older.content)
        ):
            superseded += newer is memory
            yield Finding(newer, EdgeKind.SUPERSEDES, older)


def _contradictions(memory: Memory, around: Surroundings) -> Iterator[Finding]:
    own = stems(memory.content)
    for seq in around.shared:
        other = around.near.get(seq)
        if other is None:
            continue
        theirs = stems(other.content)
        alike = 2 * len(own & theirs) / max(1, len(own) + len(theirs))
        if alike < ALIKE:
            continue
        cosine = around.cosine(memory, other)
        # The rules align every word: without vectors, common words replace the similarity.
        cosine = max(alike, DENIAL_COSINE) if cosine is None else cosine
        older, newer = sorted((memory, other), key=_key_by_time)
        kind = choose_edge(classify_pair(memory.content, other.content, cosine).relation, older, newer)
        if kind is not None:
            yield Finding(newer, kind, older)


def _causes(memory: Memory, around: Surroundings) -> Iterator[Finding]:
    session = {neighbour.seq for neighbour in around.session}
    explained = 0
    for other in sorted(around.near.values(), key=_key_by_time, reverse=True):
        named = bool(around.shared.get(other.seq, frozenset()) & NAMING)
        if not named and other.seq not in session:
            continue
        earlier, later = sorted((memory, other), key=_key_by_time)
        if later.kind not in EXPLAINING or earlier.kind not in REPORTING or not gives_cause(later.content):
            continue
        if parse(later.occurred_at) - parse(earlier.occurred_at) > CAUSE_WITHIN:
            continue
        tie = Tie(other.seq in session, named, _is_next(around.session, memory, other))
        if explained < MOST_EXPLAINED and explains(later.content, earlier.content, tie):
            explained += later is memory
            yield Finding(later, EdgeKind.CAUSE, earlier)


def _is_next(session: Sequence[Memory], memory: Memory, other: Memory) -> bool:
    """Tell whether no other memory of their session lies between two memories."""
    order = sorted((*session, memory), key=_key_by_time)
    indices = [index for index, member in enumerate(order) if member.seq in (memory.seq, other.seq)]
    return len(indices) == 2 and indices[1] - indices[0] == 1


def _key_by_time(memory: Memory) -> tuple[str, int]:
    return memory.occurred_at, memory.seq


_COMMA = re.compile(r"[,;]")
_RESOLVED = re.compile(
    r"\b(?:fixed|solved|resolved|repaired|cured|works again|recovered|green again|all clear|behoben|gelöst|läuft wieder"
    r"|arreglad\w+|resuelt\w+|réparé\w*|corrigé\w*|résolu\w*|corrigid\w+|resolvid\w+|исправ\w+|починил\w*"
    r"|виправ\w+|полагоди\w+)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Tie:
    """Ties between two memories in addition to their words: a shared session, a ticket or identifier in both."""

    session: bool = False
    names: bool = False
    nearest: bool = False


def explains(later: str, earlier: str, tie: Tie) -> bool:
    """Tell whether a later text states the cause of trouble that an earlier text reports."""
    if not (tie.session or tie.names) or not _reports(earlier):
        return False
    reported = stems(earlier)
    return any(_explains(sentence, later, reported, tie) for sentence in first_sentences(later))


@lru_cache(maxsize=4_000)
def gives_cause(text: str) -> bool:
    """Tell whether a text states the cause of something."""
    return any(
        (FOUND_CAUSE.search(sentence) or GIVES_REASON.search(sentence)) and not HEDGES.search(sentence)
        for sentence in first_sentences(text)
    )


def _reports(text: str) -> bool:
    """Tell whether a text reports trouble without its cause or its end."""
    return any(TROUBLE.search(part) and not HEDGES.search(part) for part in first_sentences(text)) and not (
        FOUND_CAUSE.search(text) or GIVES_REASON.search(text) or _RESOLVED.search(text)
    )


def _explains(sentence: str, later: str, reported: frozenset[str], tie: Tie) -> bool:
    if HEDGES.search(sentence):
        return False
    if FOUND_CAUSE.search(sentence):
        shared = len(reported & stems(later))
        return tie.names or shared >= 2 or (tie.nearest and shared >= 1)
    if reason := GIVES_REASON.search(sentence):
        # The effect is the text before the reason; if the sentence starts with the reason, it is the text after the
        # comma.
        effect = sentence[: reason.start()]
        if not stems(effect):
            effect = " ".join(_COMMA.split(sentence[reason.end() :])[1:])
        named = stems(effect)
        return bool(TROUBLE.search(effect)) and len(named & reported) >= 2 and 2 * len(named & reported) >= len(named)
    return False
