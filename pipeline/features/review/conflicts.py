"""Contradictions between memories as conflicts: the order of precedence, and one decision to settle each.

rule file > statement of the user > verified against code > unverified; among equals, the newer statement leads
"""

from dataclasses import dataclass
from enum import StrEnum

from pipeline.features.review import store as review
from pipeline.features.review.usecases import PERSON
from pipeline.kernel.errors import Conflict, NotFound
from pipeline.kernel.records import EdgeKind, Memory, Page, Source, Trust, page_of
from pipeline.kernel.records.recall import NOTHING
from pipeline.kernel.store import audit, changes, edges, memories, meta, refusals
from pipeline.kernel.store.duplicates import REFUSED
from pipeline.kernel.store.visibility import is_open_to
from pipeline.kernel.times import utc_now
from pipeline.kernel.workspace import Workspace
from pipeline.recall.annotations import refresh_staleness
from pipeline.write.revise import archive_memory, get_existing, restore_archived

# A position in the list of conflicts: the row number of the denying memory, then the other's with leading zeros.
SEQ_DIGITS = 10


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


@dataclass(frozen=True, slots=True)
class Settlement:
    """How a conflict was settled: the archived memory, or the authors of the removed edges.

    `audit_id` is the entry of the audit trail that records the archival and can undo it.
    """

    archived: str | None = None
    denial_by: str | None = None
    reverse_by: str | None = None
    audit_id: str | None = None


def list_conflicts(workspace: Workspace, limit: int, before: int | None) -> Page[MemoryConflict]:
    """List the conflicts between active memories, latest first."""
    below = None if before is None else divmod(before, 10**SEQ_DIGITS)
    with workspace.database.read() as db:
        contradictions = review.list_contradictions(db, limit + 1, below)
        page = page_of(contradictions, limit, lambda found: found.from_seq * 10**SEQ_DIGITS + found.to_seq)
        known = memories.by_seqs(db, {seq for found in page.items for seq in (found.from_seq, found.to_seq)})
        checkout = meta.get(db, meta.CHECKOUT)
    conflicts = []
    for found in page.items:
        denying, denied = known[found.from_seq], known[found.to_seq]
        if all(is_open_to(memory.scope, workspace.person_id) for memory in (denying, denied)):
            leading, other = order_by_precedence(denying, denied, checkout)
            conflicts.append(MemoryConflict(leading, other, denying.id, found.made_by, found.at))
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
    """Keep the first of two contradicting memories and archive the other, or keep both and remove the contradiction.

    Returns the data for undoing it. Raises NotFound if they do not contradict each other, Conflict if one of them is
    archived.
    """
    now = utc_now()
    with workspace.database.write() as db:
        kept, other = get_existing(db, kept_id), get_existing(db, other_id)
        pairs = (kept, other), (other, kept)
        makers = [edges.maker(db, source.seq, EdgeKind.CONTRADICTS, target.seq) for source, target in pairs]
        if not any(makers):
            raise NotFound(
                "These memories do not contradict each other. `reverie review conflicts` lists the conflicts."
            )
        if kept.archived_at is not None or other.archived_at is not None:
            raise Conflict("This conflict is settled: one of the two memories is archived.")
        if action is ConflictAction.KEEP:
            archive_memory(db, other, now)
            refusals.add(db, other.id, other.content_hash, refusals.RefusedBy.ARCHIVED, now)
            detail = {REFUSED: other.id}
            audit_id = audit.add(db, now, PERSON, audit.AuditAction.ARCHIVE, other.id, kept.id, detail)
            return Settlement(archived=other.id, audit_id=audit_id)
        for source, target in pairs:
            edges.erase(db, source.seq, EdgeKind.CONTRADICTS, target.seq, now)
        changes.append(db, changes.RELATE, [kept.id, other.id])
        return Settlement(denial_by=makers[0], reverse_by=makers[1])


def reopen_conflict(workspace: Workspace, denying_id: str, denied_id: str, settlement: Settlement) -> None:
    """Reopen the conflict of two memories; raise Conflict if it was not settled in this way."""
    now = utc_now()
    with workspace.database.write() as db:
        denying, denied = get_existing(db, denying_id), get_existing(db, denied_id)
        if settlement.archived is not None:
            wrong = denied if settlement.archived == denied_id else denying
            if wrong.id != settlement.archived:
                raise Conflict("this memory is none of the two")
            restore_archived(db, wrong, now)
            for entry in audit.of(db, wrong.id, 1):
                if entry.action is audit.AuditAction.ARCHIVE and entry.actor == PERSON:
                    audit.mark_undone(db, entry.id, now)
            return
        redrawn = [
            edges.redraw(db, source.seq, EdgeKind.CONTRADICTS, target.seq, maker, now)
            for source, target, maker in (
                (denying, denied, settlement.denial_by),
                (denied, denying, settlement.reverse_by),
            )
            if maker is not None
        ]
        if not any(redrawn):
            raise Conflict("no contradiction between these two was taken away")
        changes.append(db, changes.RELATE, [denying.id, denied.id])
