"""Read the sessions of Codex, whose rollouts are logs; cold ones may be compressed."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from pipeline.sessions.readers.codex_session import CodexSession
from pipeline.sessions.readers.fields import as_text
from pipeline.sessions.readers.log_lines import parse_records
from pipeline.sessions.readers.log_reader import LogReader, list_files
from pipeline.sessions.readers.reader import Places, SessionHead, TranscriptFile
from pipeline.sessions.readers.zstd import open_decompressed

PLAIN, COMPRESSED = ".jsonl", ".jsonl.zst"
FOLDERS = ("sessions", "archived_sessions")
# The names of sessions are read from the end of a file.
INDEX_BYTES = 4 << 20
_ID = re.compile(r"rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-(?P<id>[^_]+)")


class Reader(LogReader):
    """Reader of Codex' rollouts."""

    agent: ClassVar[str] = "codex"

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the rollouts, archived ones too; of a compressed one and its original only the original."""
        home = places.folder("CODEX_HOME", ".codex")
        for folder in FOLDERS:
            yield from list_files(self.agent, home / folder, _is_rollout)

    def open_session(self, file: TranscriptFile, state: Mapping[str, Any]) -> CodexSession:
        """Return the session of a file."""
        match = _ID.match(file.path.name)
        session_id = match["id"].partition(".")[0] if match else file.path.name.partition(".")[0]
        return CodexSession(SessionHead(self.agent, session_id), state, _find_titles(file.path))

    def open_log(self, file: TranscriptFile) -> BinaryIO:
        """Open a rollout, decompressed."""
        return open_decompressed(file.path) if file.path.name.endswith(COMPRESSED) else super().open_log(file)


def _is_rollout(path: Path) -> bool:
    if path.name.endswith(COMPRESSED):
        return not path.with_suffix("").exists()
    return path.suffix == PLAIN


def _find_titles(rollout: Path) -> Mapping[str, str]:
    """Return the titles of sessions by id, from the index in Codex' folder."""
    home = next((parent.parent for parent in rollout.parents if parent.name in FOLDERS), None)
    if home is None:
        return {}
    index = home / "session_index.jsonl"
    try:
        status = index.stat()
        return _read_titles(index, status.st_mtime_ns, status.st_size)
    except OSError:
        return {}


@lru_cache(maxsize=2)
def _read_titles(index: Path, _modified: int, size: int) -> Mapping[str, str]:
    with index.open("rb") as file:
        file.seek(max(0, size - INDEX_BYTES))
        lines = file.read(INDEX_BYTES).splitlines()
    records = (record for line in lines for record in parse_records(line) or ())
    titles = {as_text(record.get("id")): as_text(record.get("thread_name")) for record in records}
    return {session_id: title for session_id, title in titles.items() if title}
