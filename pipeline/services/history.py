"""Answer from past sessions: what fixed an error, which command works, who changed a file, what often fails."""

from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from pipeline.archive.explanations import find_explanation
from pipeline.archive.remedies import Remedy, find_fixes
from pipeline.store import action_history
from pipeline.store.agent_sessions import JournalRow
from pipeline.workspace import Workspace


@dataclass(frozen=True, slots=True)
class ReportedRemedy:
    """A remedy with the name of its session, and the agent's sentence that explains it."""

    remedy: Remedy
    session_name: str | None
    explanation: str | None


@dataclass(frozen=True, slots=True)
class FixReport:
    """The past occurrences of an error, newest first, and its remedies, best first."""

    occurrences: Sequence[JournalRow]
    remedies: Sequence[ReportedRemedy]


def find_fix(workspace: Workspace, error: str, limit: int) -> FixReport:
    """Find what was done about an error in past sessions."""
    with workspace.database.read() as db:
        fixes = find_fixes(db, error, workspace.person_id, limit)
        return FixReport(fixes.occurrences, _report(db, fixes.remedies))


def _report(db: Connection, remedies: Sequence[Remedy]) -> list[ReportedRemedy]:
    names = action_history.list_names(db, [remedy.failure.session_id for remedy in remedies])
    return [
        ReportedRemedy(remedy, names.get(remedy.failure.session_id), find_explanation(db, remedy))
        for remedy in remedies
    ]
