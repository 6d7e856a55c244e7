"""The readers of the transcripts that hook events name by their path."""

from collections.abc import Mapping
from pathlib import Path

from pipeline.records.transcripts import TranscriptMark
from web.hooks.transcript import Said, read_transcript

# By host, the reader of its sessions. Other hosts write Claude Code's format.
READERS: Mapping[str, str] = {"qwen-code": "qwen-code", "copilot": "copilot-cli", "antigravity": "antigravity"}


def read_host_transcript(
    host: str, file: Path, session_id: str, mark: TranscriptMark | None, *, is_answered: bool = True
) -> tuple[list[Said], TranscriptMark | None]:
    """Return the messages of finished turns after a mark in a host's transcript, and the mark after them."""
    agent = READERS.get(host)
    if agent is None:
        return read_transcript(file, session_id, mark, is_answered=is_answered)
    # Imported on demand: the hook client of a team reads transcripts while an agent waits.
    from web.hooks.session_logs import read_session_log

    return read_session_log(agent, file, session_id, mark, is_answered=is_answered)
