"""The sessions that were imported, and the progress of an import, as a status reports them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from pipeline.errors import StoreUnavailable
from pipeline.services.import_progress import ImportProgress, read_import_progress
from pipeline.store import session_history
from pipeline.store.transcripts import Transcripts
from pipeline.workspace import Workspace


@dataclass(frozen=True, slots=True)
class ImportedSessions:
    """The imported sessions of some workspaces, their number by workspace, and the running or last import."""

    count: session_history.ImportedCount
    by_workspace: Mapping[str, int]
    progress: ImportProgress | None

    def describe(self, now: datetime) -> str | None:
        """Return one line about a running or interrupted import, or about what was imported; None without both."""
        if self.progress is not None and self.progress.ended_at is None:
            return self.progress.describe()
        if not self.count.sessions:
            return None
        last = (self.count.last_at or "")[:10]
        until = "today" if last == now.date().isoformat() else last
        return f"sessions imported: {self.count.sessions:,} ({(self.count.first_at or '')[:10]} to {until})"


def read_imported_sessions(workspaces: Iterable[Workspace], transcripts: Transcripts) -> ImportedSessions:
    """Count the imported sessions of workspaces; those that cannot be read are skipped."""
    counts = {workspace.id: count for workspace in workspaces if (count := _count(workspace)).sessions}
    total = session_history.ImportedCount(
        sum(count.sessions for count in counts.values()),
        min((count.first_at for count in counts.values() if count.first_at is not None), default=None),
        max((count.last_at for count in counts.values() if count.last_at is not None), default=None),
    )
    by_workspace = {name: count.sessions for name, count in counts.items()}
    return ImportedSessions(total, by_workspace, read_import_progress(transcripts))


def _count(workspace: Workspace) -> session_history.ImportedCount:
    try:
        if not workspace.exists:
            return session_history.ImportedCount()
        with workspace.database.read() as db:
            return session_history.count_imported(db, workspace.person_id)
    except StoreUnavailable:
        return session_history.ImportedCount()
