"""Read the sessions of Cline, and the tasks of its extension for VS Code and of those made from it."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from pipeline.transcripts.cline_messages import ClineLog
from pipeline.transcripts.documents import build_problem, continue_session, describe_file, list_folder, load_document
from pipeline.transcripts.editor_folders import EDITORS, list_user_folders
from pipeline.transcripts.fields import as_list, as_mapping, as_text, as_time
from pipeline.transcripts.reader import Places, SessionHead, SessionPart, TranscriptFile
from pipeline.transcripts.session_log import LeftOut

_AGENT = "cline"
_MESSAGES = "api_conversation_history.json"


class Reader:
    """Reads Cline."""

    agent: ClassVar[str] = _AGENT

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the messages of sessions; those of subagents are other files in the same folders."""
        sessions = _find_sessions(places)
        for entry in list_folder(sessions):
            yield from describe_file(_AGENT, sessions / entry.name / f"{entry.name}.messages.json")
        yield from _list_tasks(_AGENT, places, ("saoudrizwan.claude-dev",))

    def read(self, file: TranscriptFile, mark: str | None) -> Iterator[SessionPart]:
        """Yield what was said and done since a mark, or all of it without one."""
        return _read_task(file, mark) if file.path.name == _MESSAGES else _read_session(file, mark)


class RooReader:
    """Reads Roo Code and Kilo Code's extension, which were made from Cline."""

    agent: ClassVar[str] = "roo-code"

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the tasks."""
        return _list_tasks(self.agent, places, ("rooveterinaryinc.roo-cline", "kilocode.kilo-code"))

    def read(self, file: TranscriptFile, mark: str | None) -> Iterator[SessionPart]:
        """Yield what was said and done since a mark, or all of it without one."""
        return _read_task(file, mark)


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


class _TaskLog(ClineLog):
    """Tasks mark all that the person wrote with tags."""

    is_tagged = True


def _list_tasks(agent: str, places: Places, extensions: tuple[str, ...]) -> Iterator[TranscriptFile]:
    """Yield the tasks of extensions in all editors."""
    for user in list_user_folders(places, EDITORS):
        for extension in extensions:
            tasks = user / "globalStorage" / extension / "tasks"
            for task in list_folder(tasks):
                yield from describe_file(agent, tasks / task.name / _MESSAGES)


def _read_task(file: TranscriptFile, mark: str | None) -> Iterator[SessionPart]:
    """Yield what was said and done in a task since a mark."""
    messages, problem = load_document(file.path)
    task_id = file.path.parent.name
    if problem:
        yield build_problem(file, mark, problem, task_id)
        return
    item = _find_item(file.path.parent)
    # Another task wrote the prompts of a subtask.
    is_subtask = bool(item.get("parentTaskId"))
    head = SessionHead(
        file.agent,
        task_id,
        cwd=as_text(item.get("workspace")) or as_text(item.get("cwdOnTaskInitialization")),
        title=None if is_subtask else as_text(item.get("task"))[:200] or None,
        # The id of a task is the time at which it was created.
        started_at=as_time(int(task_id)) if task_id.isdigit() else as_time(item.get("ts")),
    )
    log = _TaskLog(head, {})
    if is_subtask:
        log.left_out[LeftOut.SUBAGENT] += 1
    else:
        log.take_messages(messages)
    yield from continue_session(log, mark)


def _find_item(folder: Path) -> Mapping[str, Any]:
    """Return what the extension's list of tasks says of a task."""
    document, _ = load_document(folder / "history_item.json")
    if isinstance(document, dict):
        return document
    listed = folder.parents[1] / "state/taskHistory.json"
    return _load_items(listed, listed.stat().st_mtime_ns).get(folder.name, {}) if listed.is_file() else {}


@lru_cache(maxsize=4)
def _load_items(path: Path, _modified: int) -> Mapping[str, Mapping[str, Any]]:
    document, _ = load_document(path)
    return {as_text(item.get("id")): item for item in map(as_mapping, as_list(document))}
