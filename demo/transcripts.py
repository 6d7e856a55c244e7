"""Write sessions as Claude Code stores them, in a project's folder."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from demo.sample import Entry, Session
from pipeline.kernel.times import utc_text

BETWEEN_ENTRIES = timedelta(minutes=2)


def write_transcript(home: Path, cwd: Path, session: Session) -> None:
    """Write a session of someone with this home folder who worked in the folder `cwd`."""
    folder = home / ".claude" / "projects" / f"-{cwd.name}"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(record) for record in _list_records(session, cwd)]
    (folder / f"{session.id}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _list_records(session: Session, cwd: Path) -> Iterator[dict[str, Any]]:
    for number, entry in enumerate(session.entries, start=1):
        head = {
            "sessionId": session.id,
            "timestamp": utc_text(session.start + number * BETWEEN_ENTRIES),
            "cwd": str(cwd),
            "gitBranch": "main",
            "version": "2.1.40",
            "uuid": f"{session.id}-{number}",
            "parentUuid": f"{session.id}-{number - 1}" if number > 1 else None,
        }
        yield from _list_entry_records(head, entry, cwd)
    if session.title is not None:
        yield {"type": "ai-title", "sessionId": session.id, "aiTitle": session.title}


def _list_entry_records(head: dict[str, Any], entry: Entry, cwd: Path) -> Iterator[dict[str, Any]]:
    """Yield the record of a message, or those of a call and its result."""
    kind, text, *failure = entry
    if kind == "user":
        yield {"type": "user", **head, "message": {"role": "user", "content": text}}
        return
    block: dict[str, Any] = {"type": "text", "text": text}
    if kind != "agent":
        block = {"type": "tool_use", "id": f"call-{head['uuid']}", **_describe_call(kind, text, cwd)}
    message = {"id": f"message-{head['uuid']}", "role": "assistant", "content": [block]}
    yield {"type": "assistant", **head, "message": message}
    if kind != "agent":
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": block["id"], "content": "done"}
        if failure:
            code, output = failure
            result |= {"content": f"Exit code {code}\n{output}", "is_error": True}
        answer = {"role": "user", "content": [result]}
        yield {"type": "user", **head, "uuid": f"{head['uuid']}-result", "message": answer}


def _describe_call(kind: str, text: str, cwd: Path) -> dict[str, Any]:
    if kind == "edit":
        path = str(cwd / text)
        return {"name": "Edit", "input": {"file_path": path, "old_string": "before", "new_string": "after"}}
    return {"name": "Bash", "input": {"command": text}}
