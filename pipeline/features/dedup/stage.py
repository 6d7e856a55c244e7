"""The dedup stage: merge duplicates, link contradicting and superseding memories, and queue doubtful pairs.

The newer memory is always merged into the older, whichever is examined first: workers run in no fixed order. Memories
that are kept in sync with a source are compared with those of people and agents, never with each other: the source
decides about its content, and two similar files are two files. Memories from the stores of different tools, and from
different rule files, are compared for contradictions only.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from sqlite3 import Connection
from typing import Any, Final, NamedTuple

from pipeline.index.codes import Vector
from pipeline.index.dense import DenseIndex
from pipeline.index.vectors import VectorTable
from pipeline.kernel.records import EdgeKind, Memory, Source
from pipeline.kernel.records.digestion import WorkItem
from pipeline.kernel.store import (
    audit,
    changes,
    duplicates,
    edges,
    index_state,
    ingested,
    memories,
    meta,
    refusals,
    work,
)
from pipeline.kernel.store.database import Database
from pipeline.kernel.times import utc_now
from pipeline.text.similarity.choices import find_contradiction, read_statement, relate_by_key
from pipeline.text.similarity.comparable_text import (
    ComparableText,
    WordPlaces,
    choose_rules,
    comparable_text,
    gives_another_value,
    gives_value,
)
from pipeline.text.similarity.pair_classifier import (
    DENIAL_COSINE,
    MAX_VALUE,
    PAIR_COSINE,
    REPLACEMENT_COSINE,
    Judgement,
    Relation,
    classify_pair,
)
from pipeline.text.similarity.pair_outcome import choose_edge, find_merge_blockers
from pipeline.write.reindex import reindex

NEIGHBOURS = 8
# Similar rules crowd together, so the superseded one need not be among the nearest.
SIMILAR_RULES = 64
# Number of neighbors to fetch: many may be archived, or of another scope.
MAX_NEIGHBORS = 512
# A write of the web server waits for a few memories, not for a full batch.
PER_TRANSACTION = 16
# Maximum error of a cosine of two texts in eight bits.
QUANTIZATION_ERROR = 0.02
Origins = Mapping[int, set[ingested.NativeOrigin]]
NEAR = min(PAIR_COSINE, DENIAL_COSINE, REPLACEMENT_COSINE)
_DIFFERENT: Final = Judgement(Relation.DIFFERENT)


@dataclass(frozen=True, slots=True)
class PairFinding:
    """The relation between two memories as they were when they were compared."""

    older: Memory
    newer: Memory
    cosine: float
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class DedupStage:
    """Find duplicates and contradictions among the memories of a workspace."""

    database: Database
    table: Callable[[], VectorTable]
    dense: Callable[[], DenseIndex]

    def load(self) -> None:
        """Load the index."""
        self.dense()

    def run(self, items: Sequence[WorkItem], owner: str) -> None:
        """Compare each memory with its nearest, then apply the results and complete, a few memories per transaction."""
        with self.database.read() as db:
            mine = duplicates.list_comparable(db, [item.seq for item in items])
            generation = meta.get_int(db, meta.VECTORS_EPOCH), meta.get_int(db, meta.VECTORS_GENERATION)
        near = self._measure_cosines(mine, generation)
        findings = self._judge(mine, near)
        for start in range(0, len(items), PER_TRANSACTION):
            with self.database.write() as db:
                now = utc_now()
                for item in work.complete(db, items[start : start + PER_TRANSACTION], owner):
                    for finding in findings.get(item.seq, ()):
                        apply_finding(db, finding, now)

    def _measure_cosines(self, mine: Sequence[Memory], generation: tuple[int, int]) -> dict[int, dict[int, float]]:
        """Return the cosines (row number → cosine) of each memory's neighbors, exact where it matters."""
        table = self.table()
        own = table.vectors([memory.seq for memory in mine]).by_memory() if mine else {}
        # Without waiting for the latest vectors, two simultaneous duplicates would never meet.
        self.dense().refresh(generation)
        candidates = {seq: self._find_candidates(seq, passages[0], generation) for seq, passages in own.items()}
        nearest = self._choose_nearest([memory for memory in mine if memory.seq in own], candidates)
        unread = sorted({other for seqs in nearest.values() for other in seqs} - own.keys())
        others = own | (table.vectors(unread).by_memory() if unread else {})
        return {
            seq: {other: _cosine(own[seq], others[other]) for other in seqs if other in others}
            for seq, seqs in nearest.items()
        }

    def _find_candidates(self, seq: int, passage: Vector, generation: tuple[int, int]) -> list[int]:
        neighbors, cosines = self.dense().find_near(passage, generation, MAX_NEIGHBORS)
        near: list[int] = neighbors[(cosines > NEAR - QUANTIZATION_ERROR) & (neighbors != seq)].tolist()
        return near

    def _choose_nearest(self, mine: Sequence[Memory], candidates: dict[int, list[int]]) -> dict[int, list[int]]:
        """Return for each memory its nearest comparable memories."""
        everybody = sorted({other for seqs in candidates.values() for other in seqs})
        with self.database.read() as db:
            scopes = duplicates.find_scopes(db, everybody)
            synced = ingested.list_synced(db, [*everybody, *candidates])
            origins = ingested.list_native_origins(db, [*everybody, *candidates])
        return {
            memory.seq: [
                other
                for other in candidates[memory.seq]
                if scopes.get(other) == memory.scope
                and (not (memory.seq in synced and other in synced) or _may_conflict(origins, memory.seq, other))
            ][: SIMILAR_RULES if memory.seq in origins or _gives_value(memory) else NEIGHBOURS]
            for memory in mine
        }

    def _judge(self, mine: Sequence[Memory], near: dict[int, dict[int, float]]) -> dict[int, list[PairFinding]]:
        """Return by row number the relations of each memory to its neighbors, in the order of writing."""
        with self.database.read() as db:
            seqs = sorted({other for cosines in near.values() for other in cosines})
            comparable = duplicates.list_comparable(db, seqs)
            origins = ingested.list_native_origins(db, [*seqs, *near])
        others = {memory.seq: memory for memory in comparable}
        return {
            memory.seq: [
                finding
                for other, cosine in sorted(near.get(memory.seq, {}).items())
                if other in others and others[other].scope == memory.scope
                for finding in _compare(memory, others[other], cosine, origins)
            ]
            for memory in mine
        }


def _gives_value(memory: Memory) -> bool:
    return gives_value(memory.content) or read_statement(memory) is not None


def _may_conflict(origins: Origins, seq: int, other: int) -> bool:
    """Return whether two memories are from the stores of different tools, or from different rule files."""
    mine, theirs = origins.get(seq, set()), origins.get(other, set())
    if not mine or not theirs or not mine.isdisjoint(theirs):
        return False
    tools, other_tools = ({origin.tool for origin in those} for those in (mine, theirs))
    return tools.isdisjoint(other_tools) or tools == other_tools == {ingested.RULES_TOOL}


def _compare(first: Memory, second: Memory, cosine: float, origins: Origins) -> Iterator[PairFinding]:
    older, newer = sorted((first, second), key=lambda memory: memory.seq)
    judgement = relate_by_key(older, newer) or relate_pair(older.content, newer.content, cosine)
    are_native = older.seq in origins and newer.seq in origins
    if are_native or (judgement.relation is Relation.DIFFERENT and (older.seq in origins or newer.seq in origins)):
        how = find_contradiction(older.content, newer.content)
        judgement = Judgement(Relation.DIFFERENT) if how is None else Judgement(Relation.CONTRADICTS, (how,))
    if judgement.relation is not Relation.DIFFERENT:
        yield PairFinding(older, newer, cosine, judgement)


def apply_finding(db: Connection, finding: PairFinding, now: str) -> None:
    """Apply a finding if both memories still exist and no other decision was made."""
    current = memories.by_seqs(db, (finding.older.seq, finding.newer.seq))
    if len(current) < 2:
        return
    older, newer = current[finding.older.seq], current[finding.newer.seq]
    if (older.content, newer.content) != (finding.older.content, finding.newer.content):
        # An edited text is embedded and compared again.
        return
    if newer.archived_at is not None:
        return
    if older.archived_at is not None:
        _refuse_again(db, older, newer, finding.judgement.relation, now)
    elif len(ingested.list_synced(db, list(current))) < 2:
        _link_or_merge(db, older, newer, finding, now)
    elif _may_conflict(ingested.list_native_origins(db, list(current)), older.seq, newer.seq):
        _link_conflict(db, older, newer, finding.judgement.relation, now)


def _link_conflict(db: Connection, older: Memory, newer: Memory, relation: Relation, now: str) -> None:
    """Link two memories of different stores that contradict each other; the leading one contradicts the other."""
    if relation is not Relation.CONTRADICTS or duplicates.is_marked_different(db, older.seq, newer.seq):
        return
    # A rule file leads, then the newer statement.
    other, leading = sorted(
        (older, newer), key=lambda memory: (memory.is_of_rule_file, *duplicates.find_last_statement(db, memory.seq))
    )
    if edges.find(db, leading.seq, EdgeKind.CONTRADICTS, other.seq, duplicates.DEDUP, now):
        changes.append(db, changes.RELATE, [leading.id, other.id])


def _link_or_merge(db: Connection, older: Memory, newer: Memory, finding: PairFinding, now: str) -> None:
    relation = finding.judgement.relation
    earlier, later = sorted((older, newer), key=lambda memory: duplicates.find_last_statement(db, memory.seq))
    if kind := choose_edge(relation, earlier, later):
        if edges.maker(db, earlier.seq, EdgeKind.SUPERSEDES, later.seq) == duplicates.DEDUP:
            # The old value was stated again.
            edges.remove(db, earlier.seq, EdgeKind.SUPERSEDES, later.seq)
        if edges.find(db, later.seq, kind, earlier.seq, duplicates.DEDUP, now):
            changes.append_link(db, kind, later.id, [earlier.id])
    elif older.kind is newer.kind and not duplicates.is_known(db, older.seq, newer.seq):
        blockers = find_merge_blockers(older, newer)
        reasons = (*finding.judgement.reasons, *blockers)
        if relation is Relation.SAME and not blockers:
            duplicates.merge(db, older, newer, duplicates.DEDUP, now, {"cosine": round(finding.cosine, 4)})
            reindex(db, older)
        else:
            duplicates.add(db, older.seq, newer.seq, finding.cosine, reasons, now)


def _refuse_again(db: Connection, refused: Memory, offered: Memory, relation: Relation, now: str) -> None:
    """Archive a paraphrase of a refused memory, unless a person wrote it."""
    if offered.source is Source.USER or relation is not Relation.SAME or not refusals.is_refused(db, refused.id):
        return
    memories.archive(db, offered.seq, now)
    index_state.drop_tokens(db, offered.seq)
    changes.append(db, changes.ARCHIVE, [offered.id])
    refusals.count_offer(db, refused.id, now)
    detail = {duplicates.REFUSED: refused.id}
    audit.add(db, now, duplicates.DEDUP, audit.AuditAction.ARCHIVE, offered.id, detail=detail)


def _cosine(first: Vector, second: Vector) -> float:
    """Return the similarity of two memories: every passage of each must have a match in the other."""
    cosines = first @ second.T
    return float(min(cosines.max(axis=0).min(), cosines.max(axis=1).min()))


class _OwnWords(NamedTuple):
    """The words that only one text of a pair has: first and last positions, and whether one of them is a value."""

    places: Sequence[tuple[int, int]]
    has_values: bool


def relate_pair(first: str, second: str, cosine: float) -> Judgement:
    """Classify a pair like `classify_pair`, but give no reasons for a difference."""
    if not cosine >= REPLACEMENT_COSINE or (first != second and _is_surely_different(first, second, cosine)):
        return _DIFFERENT
    if first != second and cosine < DENIAL_COSINE and not gives_another_value(first, second):
        return _DIFFERENT
    judgement = classify_pair(first, second, cosine)
    return _DIFFERENT if judgement.relation is Relation.DIFFERENT else judgement


def _is_surely_different(first: str, second: str, cosine: float) -> bool:
    """Return whether the places of distinct words exclude every relation.

    A contradiction needs the same words but one value, and a merge the same values.
    """
    pair = comparable_text(first), comparable_text(second)
    differing = _find_differing_words(*pair)
    if differing is None or not _excludes_conflict(*differing):
        return False
    if cosine >= PAIR_COSINE and not (differing[0].has_values and differing[1].has_values):
        return False
    bare = comparable_text(pair[0].bare), comparable_text(pair[1].bare)
    if bare == pair:
        return True
    differing = _find_differing_words(*bare)
    return differing is not None and _excludes_conflict(*differing)


def _find_differing_words(first: ComparableText, second: ComparableText) -> tuple[_OwnWords, _OwnWords] | None:
    """Return the distinct words that only one of two texts has, None if a rule could rearrange their words."""
    coupled, english = choose_rules(first, second)
    one, other = (text.find_places(coupled, english=english) for text in (first, second))
    if one.is_passive or other.is_passive:
        return None
    if not (other.words.keys().isdisjoint(one.adjacent) and one.words.keys().isdisjoint(other.adjacent)):
        return None
    return _without(one, other), _without(other, one)


def _without(one: WordPlaces, other: WordPlaces) -> _OwnWords:
    words = other.words
    places = [place for text, place in one.words.items() if place is not None and text not in words]
    return _OwnWords(places, any(value not in words for value in one.values))


def _excludes_conflict(one: _OwnWords, other: _OwnWords) -> bool:
    """Return whether the differing words of a text are too far apart for one value in place of another."""
    return _is_wide(one.places) or _is_wide(other.places)


def _is_wide(places: Sequence[tuple[int, int]]) -> bool:
    if not places:
        return False
    first = min(position for position, _ in places)
    last = max(position for _, position in places)
    # Without a word before it, a value belongs to nothing.
    return last - first >= MAX_VALUE or (first == 0 and last > 0)


def create_stage(worker: Any, workspace_id: str) -> DedupStage:
    """Return the stage of a workspace with the services of the worker."""
    vectors, dense = partial(worker.vectors, workspace_id), partial(worker.dense, workspace_id)
    return DedupStage(worker.databases.get(workspace_id), vectors, dense)
