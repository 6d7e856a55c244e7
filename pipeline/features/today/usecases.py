"""A day in the person's own words: what was learned, changed and forgotten in each workspace."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from sqlite3 import Connection

from pipeline.kernel.enums import GoalStatus
from pipeline.kernel.records import HistoryEntry, Kind, Memory
from pipeline.kernel.store import audit, changes, edges, facts, history, memories
from pipeline.kernel.store.database import Databases
from pipeline.kernel.store.duplicates import REFUSED
from pipeline.kernel.store.visibility import is_open_to
from pipeline.kernel.times import utc_now, utc_text
from pipeline.kernel.workspace import Workspace

# More imported memories than this are only counted.
LISTED_IMPORTS = 5
MOST_CHANGES = 500
# The clock of a file system may be behind that of the program by a tick or, on FAT, two seconds.
FILE_CLOCK_S = 2.0
MOST_ACTS = 20
OPERATIONS = (
    changes.CREATE,
    changes.EDIT,
    changes.ARCHIVE,
    changes.RESTORE,
    changes.PURGE,
    changes.CLOSE,
    changes.SUPERSEDE,
)


class DayPart(StrEnum):
    """The list of a day that a change belongs to."""

    LEARNED = "learned"
    CHANGED = "changed"
    FORGOTTEN = "forgotten"


# The part that the changes of many imported memories are counted in.
PART_OF_IMPORT: Mapping[str, DayPart] = {
    changes.CREATE: DayPart.LEARNED,
    changes.EDIT: DayPart.CHANGED,
    changes.SUPERSEDE: DayPart.CHANGED,
    changes.ARCHIVE: DayPart.FORGOTTEN,
}


class UndoMethod(StrEnum):
    """How to undo a change: by the audit, or by restoring or archiving a memory, or by its earlier value or text."""

    AUDIT = "audit"
    RESTORE = "restore"
    ARCHIVE = "archive"
    VALUE = "value"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Undo:
    """How to undo a change, and the id of an audit entry, a memory, a key (`subject/attribute`) or a history entry."""

    method: UndoMethod
    id: str


@dataclass(frozen=True, slots=True)
class DayChange:
    """A change of a day in a few words, and the memory as it is now; None for a purged memory.

    `before` is the sentence that the memory replaced.
    """

    at: str
    part: DayPart
    what: str
    memory: Memory | None = None
    before: str | None = None
    undo: Undo | None = None


@dataclass(frozen=True, slots=True)
class WorkspaceDay:
    """What was learned, changed and forgotten in a day, the last first; `imported` counts many imported memories.

    With `more`, the day had more changes than are listed.
    """

    workspace: str
    learned: tuple[DayChange, ...]
    changed: tuple[DayChange, ...]
    forgotten: tuple[DayChange, ...]
    imported: Mapping[DayPart, int] = field(default_factory=dict)
    more: bool = False


def list_written_since(databases: Databases, since: datetime) -> list[str]:
    """List the workspaces that were written since a time, without opening their stores."""
    since_ns = int((since.timestamp() - FILE_CLOCK_S) * 1e9)
    return [name for name, files in databases.states().items() if max(written for _, written, _ in files) >= since_ns]


def list_day(
    workspaces: Iterable[Workspace], since: datetime, until: datetime, most: int = MOST_CHANGES
) -> list[WorkspaceDay]:
    """Return the day of each workspace in which something happened, each with at most so many changes."""
    days = [_read_day(workspace, since, until, most) for workspace in workspaces if workspace.exists]
    return [day for day in days if day.learned or day.changed or day.forgotten or day.imported]


def _read_day(workspace: Workspace, since: datetime, until: datetime, most: int) -> WorkspaceDay:
    with workspace.database.read() as db:
        counts = changes.count_imported(db, since, until)
        many = {op: count for op, count in counts.items() if count > LISTED_IMPORTS and op in PART_OF_IMPORT}
        logged = changes.list_between(db, since, until, OPERATIONS, list(many), most + 1)
        listed = _Day(db, utc_text(since), utc_text(until), workspace.person_id).describe(logged[:most])
    imported = dict.fromkeys((PART_OF_IMPORT[op] for op in many), 0)
    for op, count in many.items():
        imported[PART_OF_IMPORT[op]] += count
    learned, changed, forgotten = (tuple(change for change in listed if change.part is part) for part in DayPart)
    return WorkspaceDay(workspace.id, learned, changed, forgotten, imported, len(logged) > most)


class _Day:
    """Describes each memory that was changed in a day by the last of its changes that a person cares about."""

    def __init__(self, db: Connection, since: str, until: str, person_id: str | None) -> None:
        self._db = db
        self._since = since
        self._until = until
        self._person_id = person_id
        self._now = utc_now()

    def describe(self, logged: Iterable[tuple[datetime, changes.LoggedChange]]) -> list[DayChange]:
        """Return the changes of a log, the last first."""
        # The first time of an operation in this order is its last one.
        operations: dict[str, dict[str, str]] = {}
        for at, change in logged:
            operations.setdefault(change.memory_id, {}).setdefault(change.op, utc_text(at))
        known = memories.by_ids(self._db, operations)
        found = [self._describe(known.get(memory_id), times) for memory_id, times in operations.items()]
        described = [change for change in found if change is not None]
        # A new memory that replaced another one is listed once, with the earlier sentence.
        replacing = {change.memory.id for change in described if change.memory and change.part is DayPart.CHANGED}
        listed = [
            change
            for change in described
            if change.part is not DayPart.LEARNED or change.memory is None or change.memory.id not in replacing
        ]
        return sorted(listed, key=lambda change: change.at, reverse=True)

    def _describe(self, memory: Memory | None, times: Mapping[str, str]) -> DayChange | None:
        if memory is None:
            return DayChange(times[changes.PURGE], DayPart.FORGOTTEN, "purged") if changes.PURGE in times else None
        if memory.candidate or not is_open_to(memory.scope, self._person_id):
            return None
        if memory.archived_at is not None and changes.ARCHIVE in times:
            return self._describe_archived(memory, times[changes.ARCHIVE])
        replaced = times.get(changes.SUPERSEDE) or times.get(changes.CLOSE)
        change = self._describe_replaced(memory, replaced) if replaced else None
        return change or self._describe_active(memory, times)

    def _describe_active(self, memory: Memory, times: Mapping[str, str]) -> DayChange | None:
        if changes.CREATE in times:
            what = "goal set" if memory.kind is Kind.GOAL else "learned"
            return DayChange(times[changes.CREATE], DayPart.LEARNED, what, memory)
        if changes.EDIT in times and (change := self._describe_edited(memory, times[changes.EDIT])):
            return change
        if changes.RESTORE in times:
            undo = Undo(UndoMethod.ARCHIVE, memory.id)
            return DayChange(times[changes.RESTORE], DayPart.CHANGED, "restored", memory, undo=undo)
        return None

    def _describe_archived(self, memory: Memory, at: str) -> DayChange:
        act = self._find_act(memory, audit.AuditAction.MERGE, audit.AuditAction.ARCHIVE)
        if act is None:
            undo = Undo(UndoMethod.RESTORE, memory.id)
            return DayChange(at, DayPart.FORGOTTEN, "archived", memory, undo=undo)
        undo = Undo(UndoMethod.AUDIT, act.id)
        survivor = memories.get(self._db, act.other_id or "") if act.action is audit.AuditAction.MERGE else None
        if survivor is not None and is_open_to(survivor.scope, self._person_id):
            return DayChange(at, DayPart.CHANGED, "merged", survivor, memory.content, undo)
        return DayChange(at, DayPart.FORGOTTEN, _explain_archival(act), memory, undo=undo)

    def _describe_replaced(self, memory: Memory, at: str) -> DayChange | None:
        act = self._find_act(memory, audit.AuditAction.CLOSE)
        undo = None if act is None else Undo(UndoMethod.AUDIT, act.id)
        newer = self._find_successor(memory)
        if newer is not None:
            return DayChange(at, DayPart.CHANGED, "replaced", newer, memory.content, undo or _undo_replacement(newer))
        if memory.valid_to is None:
            return None
        if memory.valid_to > self._now:
            return DayChange(at, DayPart.CHANGED, f"ends on {memory.valid_to[:10]}", memory, undo=undo)
        return DayChange(at, DayPart.FORGOTTEN, "ended", memory, undo=undo)

    def _find_successor(self, memory: Memory) -> Memory | None:
        if memory.key is not None and memory.valid_from is not None and memory.valid_to is not None:
            newer = facts.after(self._db, memory.key, memory.scope, memory.valid_from)
            newer = newer if newer is not None and newer.valid_from == memory.valid_to else None
        else:
            by = [found.by for found in edges.list_superseding(self._db, [memory.seq])]
            newer = memories.by_seqs(self._db, by[-1:]).get(by[-1]) if by else None
        return newer if newer is not None and is_open_to(newer.scope, self._person_id) else None

    def _describe_edited(self, memory: Memory, at: str) -> DayChange | None:
        entries = self._list_entries(memory)
        texts = [(number, entry.content) for number, entry in entries if entry.event == "edited" and entry.content]
        if texts and texts[0][1] != memory.content:
            number, before = texts[0]
            return DayChange(at, DayPart.CHANGED, "edited", memory, before, Undo(UndoMethod.TEXT, str(number)))
        what = _describe_goal(memory)
        return None if what is None else DayChange(at, DayPart.CHANGED, what, memory)

    def _list_entries(self, memory: Memory) -> list[tuple[int, HistoryEntry]]:
        """List the entries of a memory's history in the day, the first first."""
        page = history.page(self._db, memory.seq, MOST_ACTS, None)
        return [(number, entry) for number, entry in reversed(page) if self._since <= entry.at < self._until]

    def _find_act(self, memory: Memory, *actions: audit.AuditAction) -> audit.AuditEntry | None:
        """Return the last automatic change of a memory in the day that was not undone."""
        acts = audit.of(self._db, memory.id, MOST_ACTS)
        return next(
            (
                act
                for act in acts
                if act.action in actions and act.undone_at is None and self._since <= act.at < self._until
            ),
            None,
        )


def _undo_replacement(newer: Memory) -> Undo:
    """Return how to undo that a person replaced a memory."""
    if newer.key is None:
        return Undo(UndoMethod.ARCHIVE, newer.id)
    return Undo(UndoMethod.VALUE, f"{newer.key.subject}/{newer.key.attribute}")


def _describe_goal(memory: Memory) -> str | None:
    """Return the state of a goal that was changed, None for other memories and for a goal that is still open."""
    status = memory.details.get("status", GoalStatus.OPEN) if memory.kind is Kind.GOAL else GoalStatus.OPEN
    words = {GoalStatus.DONE: "goal reached", GoalStatus.DROPPED: "goal dropped", GoalStatus.IN_PROGRESS: "goal begun"}
    return words.get(GoalStatus(status))


def _explain_archival(act: audit.AuditEntry) -> str:
    """Return why a memory was archived automatically."""
    reasons = {
        "ended": "expired",
        "unused_days": "unused for a long time",
        "branch": "its branch was deleted",
        REFUSED: "refused before",
    }
    return next((reason for name, reason in reasons.items() if name in act.detail), "archived")
