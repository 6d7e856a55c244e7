"""List the messages in lines of an agent's session log."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pipeline.transcripts.log_reader import LogReader
from pipeline.transcripts.reader import Said, TranscriptFile
from pipeline.transcripts.readers import load_reader


def list_log_messages(agent: str, file: Path, lines: Iterable[str]) -> list[dict[str, str]]:
    """Return role and content of each message, and the id, time and folder if the log has them."""
    reader = load_reader(agent)
    assert isinstance(reader, LogReader)
    session = reader.open_session(TranscriptFile(agent, file, 0, 0), {})
    for line in lines:
        # A record of an unknown form must not hide the others.
        with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
            session.take(line.encode())
    return [_describe(entry, session.head.cwd) for entry in session.entries if isinstance(entry, Said)]


def _describe(entry: Said, cwd: str) -> dict[str, str]:
    known = {"id": entry.id, "at": entry.at, "cwd": cwd}
    return {
        "role": entry.role.value,
        "content": entry.content,
        **{name: value for name, value in known.items() if value},
    }
