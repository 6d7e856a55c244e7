"""The sessions that coding agents keep on this machine: their number, size and age, found without reading them all."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from sqlite3 import OperationalError

from pipeline.kernel.errors import ReverieError
from pipeline.kernel.times import utc_text
from pipeline.sessions.readers.reader import READERS, Places, TranscriptFile, TranscriptReader, load_reader

# A file's time of change may be that of a copy; so many of the oldest files are asked for their first record.
OLDEST_READ = 12
# What a reader raises for another program's damaged or locked file.
UNREADABLE = (OSError, ValueError, OperationalError, ReverieError)
# Files that contain many sessions.
DATABASES = frozenset({".db", ".sqlite", ".sqlite3", ".vscdb"})


@dataclass(frozen=True, slots=True)
class StoredSessions:
    """An agent's sessions: its name, the files with one session and the databases with many, their bytes and start.

    `problem` is the reason why they cannot be listed.
    """

    agent: str
    label: str
    files: int = 0
    databases: int = 0
    size: int = 0
    oldest_at: str | None = None
    problem: str | None = None


def find_stored_sessions(
    home: Path, environment: Mapping[str, str], platform: str, agents: Collection[str] | None = None
) -> list[StoredSessions]:
    """List the agents that have sessions on this machine, the one with the oldest session first."""
    places = Places(home, environment, platform)
    wanted = READERS if agents is None else [agent for agent in READERS if agent in agents]
    found = [_find_sessions(load_reader(agent), places) for agent in wanted]
    stored = [sessions for sessions in found if sessions.files or sessions.databases or sessions.problem]
    return sorted(stored, key=lambda sessions: (sessions.oldest_at or "~", sessions.agent))


def _find_sessions(reader: TranscriptReader, places: Places) -> StoredSessions:
    label, _ = READERS[reader.agent]
    try:
        files = list(reader.discover(places))
    except UNREADABLE as error:
        return StoredSessions(reader.agent, label, problem=str(error))
    databases = sum(file.path.suffix in DATABASES for file in files)
    size = sum(file.size for file in files)
    oldest_at = _find_oldest(reader, files)
    return StoredSessions(reader.agent, label, len(files) - databases, databases, size, oldest_at)


def _find_oldest(reader: TranscriptReader, files: Sequence[TranscriptFile]) -> str | None:
    oldest = sorted(files, key=lambda file: file.modified)[:OLDEST_READ]
    times = [utc_text(datetime.fromtimestamp(file.modified, UTC)) for file in oldest]
    return min([*times, *filter(None, (_find_start(reader, file) for file in oldest))], default=None)


def _find_start(reader: TranscriptReader, file: TranscriptFile) -> str | None:
    """Return the time of a file's first record; None if it cannot be read: the import reports why."""
    try:
        part = next(iter(reader.read(file, None)), None)
    except UNREADABLE:
        return None
    if part is None:
        return None
    return min(filter(None, [part.session.started_at, *(entry.at for entry in part.entries)]), default=None)
