"""Contradictions between memories as conflicts: the order of precedence, and one decision to settle each.

rule file > statement of the user > verified against code > unverified; among equals, the newer statement leads
"""

from dataclasses import dataclass
from enum import StrEnum

from pipeline.errors import Conflict as SettledConflict, NotFound
from pipeline.recall.annotations import refresh_staleness
from pipeline.records import EdgeKind, Memory, Page, Source, Trust
from pipeline.records.recall import NOTHING
from pipeline.services.review import (
    ContradictionVerdict,
    Settlement,
    list_contradictions,
    settle_contradiction,
)
from pipeline.store import edges, meta
from pipeline.workspace import Workspace
from pipeline.write.revise import get_existing


class Standing(StrEnum):
    """The ground on which a memory stands, the strongest first."""

    RULE_FILE = "rule file"
    USER = "stated by the user"
    VERIFIED = "verified against code"
    UNVERIFIED = "unverified"


class ConflictAction(StrEnum):
    """Keep the first of two memories and archive the second, or keep both."""

    KEEP = "keep"
    BOTH = "both"


_ORDER = tuple(Standing)


@dataclass(frozen=True, slots=True)
class ConflictSide:
    """A memory of a conflict, and its standing."""

    memory: Memory
    standing: Standing

    @property
    def origin(self) -> str:
        """Return the tool and file of a native memory, else the source."""
        tool, file = self.memory.metadata.get("tool"), self.memory.metadata.get("file")
        return f"{tool}: {file}" if self.memory.source is Source.IMPORT and tool and file else str(self.memory.source)


@dataclass(frozen=True, slots=True)
class MemoryConflict:
    """Two memories that contradict each other, by precedence.

    `made_by` found at a time that the denying memory contradicts the other.
    """

    leading: ConflictSide
    other: ConflictSide
    denying_id: str
    made_by: str
    at: str

    @property
    def denied_id(self) -> str:
        """Return the memory that the denying one contradicts."""
        ids = self.leading.memory.id, self.other.memory.id
        return ids[1] if ids[0] == self.denying_id else ids[0]


def list_conflicts(workspace: Workspace, limit: int, before: int | None) -> Page[MemoryConflict]:
    """List the conflicts between active memories, latest first."""
    page = list_contradictions(workspace, limit, before)
    if not page.items:
        return Page([], page.next_cursor)
    with workspace.database.read() as db:
        checkout = meta.get(db, meta.CHECKOUT)
    conflicts = []
    for found in page.items:
        leading, other = order_by_precedence(found.denying, found.denied, checkout)
        conflicts.append(MemoryConflict(leading, other, found.denying.id, found.made_by, found.at))
    return Page(conflicts, page.next_cursor)


def order_by_precedence(first: Memory, second: Memory, checkout: str | None) -> tuple[ConflictSide, ConflictSide]:
    """Return two memories with their standing, the leading one first."""
    sides = [ConflictSide(memory, _find_standing(memory, checkout)) for memory in (first, second)]
    newest_first = sorted(sides, key=lambda side: (side.memory.occurred_at, side.memory.seq), reverse=True)
    leading, other = sorted(newest_first, key=lambda side: _ORDER.index(side.standing))
    return leading, other


def _find_standing(memory: Memory, checkout: str | None) -> Standing:
    if memory.is_of_rule_file:
        return Standing.RULE_FILE
    if memory.said_by is not None or (memory.source is Source.USER and memory.trust is Trust.TRUSTED):
        return Standing.USER
    is_verified = refresh_staleness(memory, NOTHING, checkout).stale is False
    return Standing.VERIFIED if is_verified else Standing.UNVERIFIED


def settle_conflict(workspace: Workspace, kept_id: str, other_id: str, action: ConflictAction) -> Settlement:
    """Keep the first of two contradicting memories and archive the other, or keep both.

    Raises NotFound if they do not contradict each other, Conflict if one of them is archived.
    """
    with workspace.database.read() as db:
        kept, other = get_existing(db, kept_id), get_existing(db, other_id)
        is_denying = edges.maker(db, kept.seq, EdgeKind.CONTRADICTS, other.seq) is not None
        if not is_denying and edges.maker(db, other.seq, EdgeKind.CONTRADICTS, kept.seq) is None:
            raise NotFound(
                "These memories do not contradict each other. `reverie review conflicts` lists the conflicts."
            )
        if kept.archived_at is not None or other.archived_at is not None:
            raise SettledConflict("This conflict is settled: one of the two memories is archived.")
    verdict = ContradictionVerdict.DENYING if is_denying else ContradictionVerdict.DENIED
    if action is ConflictAction.BOTH:
        verdict = ContradictionVerdict.BOTH
    return settle_contradiction(workspace, *((kept_id, other_id) if is_denying else (other_id, kept_id)), verdict)
