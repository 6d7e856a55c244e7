"""A status says in one line how far an import is, or what was imported."""

from datetime import UTC, datetime

import pytest

from config.process import process_owner
from pipeline.kernel.store.session_archive import ImportedCount
from pipeline.sessions.import_progress import ImportedSessions, ImportProgress

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
SOME = ImportedCount(1004, "2025-11-02T10:00:00.000Z", "2026-03-10T08:00:00.000Z")
OLDER = ImportedCount(3, "2025-11-02T10:00:00.000Z", "2026-03-09T08:00:00.000Z")


def progress(**changes):
    values = {"files": 312, "files_total": 1004, "bytes": 410_000_000, "bytes_total": 1_230_000_000}
    return ImportProgress(process_owner(), 0.0, 10.0, **values | changes)


@pytest.mark.parametrize(
    ("count", "import_", "text"),
    [
        (ImportedCount(), None, None),
        (OLDER, progress(), "importing sessions: 312 of 1,004 files, 41 MB/s, 20 s left"),
        (
            OLDER,
            progress(sessions=1004, turns=8031, is_indexing=True),
            "imported 1,004 sessions, 8,031 messages; building the index for `reverie sessions search`",
        ),
        (SOME, progress(ended_at=20.0), "sessions imported: 1,004 (2025-11-02 to today)"),
        (OLDER, None, "sessions imported: 3 (2025-11-02 to 2026-03-09)"),
    ],
)
def test_one_line_describes_the_import(count, import_, text):
    assert ImportedSessions(count, {}, import_).describe(NOW) == text
