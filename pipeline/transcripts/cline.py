"""Read Cline's sessions: its own folder, and the tasks of its extension for VS Code."""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from pipeline.transcripts.cline_messages import ClineLog
from pipeline.transcripts.cline_tasks import MESSAGES, list_tasks, read_task
from pipeline.transcripts.documents import build_problem, continue_session, describe_file, list_folder, load_document
from pipeline.transcripts.fields import as_mapping, as_text, as_time
from pipeline.transcripts.reader import Places, SessionHead, SessionPart, TranscriptFile
from pipeline.transcripts.session_log import LeftOut

_AGENT = "cline"


class Reader:
    """Reads Cline."""

    agent: ClassVar[str] = _AGENT
    label: ClassVar[str] = "Cline"

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the messages of sessions; those of subagents are other files in the same folders."""
        sessions = _find_sessions(places)
        for entry in list_folder(sessions):
            yield from describe_file(_AGENT, sessions / entry.name / f"{entry.name}.messages.json")
        yield from list_tasks(_AGENT, places, ("saoudrizwan.claude-dev",))

    def read(self, file: TranscriptFile, mark: str | None) -> Iterator[SessionPart]:
        """Yield what was said and done since a mark, or all of it without one."""
        return read_task(file, mark) if file.path.name == MESSAGES else _read_session(file, mark)


def _find_sessions(places: Places) -> Path:
    environment = places.environment
    if sessions := environment.get("CLINE_SESSION_DATA_DIR"):
        return Path(sessions)
    if data := environment.get("CLINE_DATA_DIR"):
        return Path(data) / "sessions"
    return Path(environment.get("CLINE_DIR") or places.home / ".cline") / "data/sessions"


def _read_session(file: TranscriptFile, mark: str | None) -> Iterator[SessionPart]:
    session_id = file.path.parent.name
    document, problem = load_document(file.path)
    if problem:
        yield build_problem(file, mark, problem, session_id)
        return
    content = as_mapping(document)
    manifest = as_mapping(load_document(file.path.with_name(f"{session_id}.json"))[0])
    metadata = as_mapping(manifest.get("metadata"))
    head = SessionHead(
        _AGENT,
        session_id,
        cwd=as_text(manifest.get("cwd")) or as_text(manifest.get("workspace_root")),
        title=as_text(metadata.get("title")) or None,
        started_at=as_time(manifest.get("started_at") or manifest.get("created_at")),
        parent=as_text(as_mapping(metadata.get("fork")).get("forkedFromSessionId")) or None,
    )
    log = ClineLog(head, {})
    if content.get("agent") in ("subagent", "teammate"):
        log.left_out[LeftOut.SUBAGENT] += 1
    else:
        log.take_messages(content.get("messages"))
    yield from continue_session(log, mark)
