"""Read the tasks of Cline and of the extensions made from it, which VS Code keeps: a folder per task."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pipeline.transcripts.cline_messages import ClineLog
from pipeline.transcripts.documents import (
    build_problem,
    continue_session,
    describe_file,
    list_folder,
    load_document,
)
from pipeline.transcripts.editor_folders import EDITORS, list_user_folders
from pipeline.transcripts.fields import as_list, as_mapping, as_text, as_time
from pipeline.transcripts.reader import Places, SessionHead, SessionPart, TranscriptFile
from pipeline.transcripts.session_log import LeftOut

MESSAGES = "api_conversation_history.json"


class TaskLog(ClineLog):
    """Tasks mark all that the person wrote with tags."""

    is_tagged = True


def list_tasks(agent: str, places: Places, extensions: tuple[str, ...]) -> Iterator[TranscriptFile]:
    """Yield the tasks of extensions in all editors."""
    for user in list_user_folders(places, EDITORS):
        for extension in extensions:
            tasks = user / "globalStorage" / extension / "tasks"
            for task in list_folder(tasks):
                yield from describe_file(agent, tasks / task.name / MESSAGES)


def read_task(file: TranscriptFile, mark: str | None) -> Iterator[SessionPart]:
    """Yield what was said and done in a task since a mark."""
    messages, problem = load_document(file.path)
    task_id = file.path.parent.name
    if problem:
        yield build_problem(file, mark, problem, task_id)
        return
    item = _find_item(file.path.parent)
    head = SessionHead(
        file.agent,
        task_id,
        cwd=as_text(item.get("workspace")) or as_text(item.get("cwdOnTaskInitialization")),
        title=as_text(item.get("task"))[:200] or None,
        # The id of a task is the time at which it was created.
        started_at=as_time(int(task_id)) if task_id.isdigit() else as_time(item.get("ts")),
    )
    log = TaskLog(head, {})
    if item.get("parentTaskId"):
        # Another task wrote its prompts.
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
