"""The progress of an import of sessions, which any process can read, its start, and what was imported."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from config.operating_system import POSIX, new_process_group
from config.process import Role, is_alive, process_owner
from config.settings import Settings, environment_of
from pipeline.kernel.errors import StoreUnavailable
from pipeline.kernel.store import session_archive
from pipeline.kernel.store.session_archive import ImportedCount
from pipeline.kernel.store.transcripts import Transcripts
from pipeline.kernel.times import format_duration
from pipeline.kernel.workspace import Workspace

ROLE = "import-sessions"
MEGABYTE = 1_000_000
# Before this time, the rate is not known well enough for a forecast.
_RATED_AFTER_S = 2.0


@dataclass(frozen=True, slots=True)
class ImportProgress:
    """How far an import of sessions is; `owner` is the process that runs it. Times are seconds since the epoch.

    `is_indexing` means that all messages are stored, and that the search cannot find all of them yet.
    """

    owner: str
    started_at: float
    updated_at: float
    files: int = 0
    files_total: int = 0
    bytes: int = 0
    bytes_total: int = 0
    sessions: int = 0
    turns: int = 0
    ended_at: float | None = None
    is_indexing: bool = False
    agents: dict[str, int] = field(default_factory=dict)

    @property
    def is_running(self) -> bool:
        """Return whether the import is still running."""
        return self.ended_at is None and is_alive(self.owner)

    @property
    def rate(self) -> float:
        """Return the bytes per second."""
        return self.bytes / max(self.updated_at - self.started_at, 0.001)

    @property
    def remaining_s(self) -> float | None:
        """Return the seconds until the end, None if that is not known yet."""
        if self.updated_at - self.started_at < _RATED_AFTER_S or not self.bytes:
            return None
        return max(self.bytes_total - self.bytes, 0) / self.rate

    def describe(self) -> str:
        """Return one line about a running, finished or interrupted import."""
        stored = f"{self.sessions:,} sessions, {self.turns:,} messages"
        if self.ended_at is not None:
            return f"imported {stored} in {format_duration(self.ended_at - self.started_at)}"
        count = f"{self.files:,} of {self.files_total:,} files"
        if not self.is_running:
            return f"the import of sessions stopped after {count}; continue it with `reverie import sessions`"
        if self.is_indexing:
            return f"imported {stored}; building the index for `reverie sessions search`"
        remaining = "" if self.remaining_s is None else f", {format_duration(self.remaining_s)} left"
        return f"importing sessions: {count}, {self.rate / MEGABYTE:.0f} MB/s{remaining}"


class ProgressRecorder:
    """Record the progress of an import, at most once per interval."""

    INTERVAL_S = 0.5

    def __init__(self, transcripts: Transcripts, files_total: int, bytes_total: int) -> None:
        now = time.time()
        self._transcripts = transcripts
        self._recorded_at = 0.0
        self.progress = ImportProgress(process_owner(), now, now, files_total=files_total, bytes_total=bytes_total)

    def update(self, **changes: Any) -> None:
        """Change the progress and record it if the last record is old enough or the import is in its last steps."""
        now = time.time()
        self.progress = replace(self.progress, updated_at=now, **changes)
        if changes.keys() & {"ended_at", "is_indexing"} or now - self._recorded_at >= self.INTERVAL_S:
            self._recorded_at = now
            self._transcripts.put_import_progress(json.dumps(asdict(self.progress)))


def read_import_progress(transcripts: Transcripts) -> ImportProgress | None:
    """Return the progress of the running or the last import, None if there was none."""
    value = transcripts.get_import_progress()
    if value is None:
        return None
    try:
        return ImportProgress(**json.loads(value))
    except (ValueError, TypeError):
        # Written by another version.
        return None


def start_import_in_background(settings: Settings, agents: Sequence[str] = ()) -> int:
    """Start the import of all sessions, or of some agents, as a separate process that outlives this process.

    Returns its process id; if an import is already running, that of the running import.
    """
    running = Role(settings.paths.root, ROLE).holder()
    if running is not None:
        return running
    settings.paths.ensure()
    with (settings.paths.logs / "import.log").open("ab") as log:
        process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-I", "-m", "reverie", "import", "sessions", *(f"--agent={agent}" for agent in agents)],
            env=environment_of(settings.paths),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=os.sep,
            # The end of the terminal does not reach it.
            **({"start_new_session": True} if POSIX else new_process_group()),
        )
    return process.pid


@dataclass(frozen=True, slots=True)
class ImportedSessions:
    """The imported sessions of some workspaces, their number by workspace, and the running or last import."""

    count: ImportedCount
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
    total = ImportedCount(
        sum(count.sessions for count in counts.values()),
        min((count.first_at for count in counts.values() if count.first_at is not None), default=None),
        max((count.last_at for count in counts.values() if count.last_at is not None), default=None),
    )
    by_workspace = {name: count.sessions for name, count in counts.items()}
    return ImportedSessions(total, by_workspace, read_import_progress(transcripts))


def _count(workspace: Workspace) -> ImportedCount:
    try:
        if not workspace.exists:
            return ImportedCount()
        with workspace.database.read() as db:
            return session_archive.count_imported(db, workspace.person_id)
    except StoreUnavailable:
        return ImportedCount()
