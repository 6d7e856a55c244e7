"""Transcripts of sessions, written as Claude Code writes them."""

import json
import re
import uuid
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

VERSION = "2.1.36"
MODEL = "claude-sonnet-4-5-20250929"
# The model that Claude Code names for what it says itself.
SYNTHETIC = "<synthetic>"
INTERRUPTED = "[Request interrupted by user]"
SUMMARY = (
    "This session is being continued from a previous conversation that ran out of context. The conversation is "
    "summarized below:\nThe user and the assistant worked on the project; details are in the files."
)

Record = dict[str, Any]


def transcript_path(folder: Path, project: Path, session_id: str) -> Path:
    """Return where Claude Code keeps the transcript of a session in a project."""
    return folder / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(project)) / f"{session_id}.jsonl"


class Transcript:
    """The transcript of one session."""

    def __init__(self, file: Path, project: Path, session_id: str, now: Callable[[], datetime]) -> None:
        self.file = file
        self.folder = project
        self._session_id = session_id
        self._now = now
        self._last: str | None = None
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()

    def copy(self, original: Path, original_id: str) -> None:
        """Begin with the records of another session, as a fork does: same ids and times, a new session id."""
        for line in original.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if "uuid" in record:
                record["forkedFrom"] = {"sessionId": original_id, "messageUuid": record["uuid"]}
                self._last = record["uuid"]
            self._write(record | {"sessionId": self._session_id})

    def add_prompt(self, text: str) -> None:
        """Add what the user typed."""
        message = {"role": "user", "content": text}
        self._add("user", message=message, permissionMode="default", promptId=str(uuid.uuid4()))

    def add_hook_context(self, event: str, context: str) -> None:
        """Add the text that a hook gave to the agent."""
        attachment = {
            "type": "hook_additional_context",
            "content": [context],
            "hookName": event,
            "toolUseID": f"hook-{uuid.uuid4()}",
            "hookEvent": event,
        }
        self._add("attachment", attachment=attachment)

    def add_reply(self, text: str) -> None:
        """Add the agent's answer."""
        self._add("assistant", message=_assistant([{"type": "text", "text": text}]), requestId=_name("req"))

    def add_error(self, text: str) -> None:
        """Add the error that the host shows instead of an answer."""
        message = _assistant([{"type": "text", "text": text}], model=SYNTHETIC, stop_reason="stop_sequence")
        self._add("assistant", message=message, isApiErrorMessage=True)

    def add_interruption(self) -> None:
        """Add what the host writes when the user stops the agent."""
        self._add("user", message={"role": "user", "content": [{"type": "text", "text": INTERRUPTED}]})

    def add_tool_use(self, use_id: str, name: str, arguments: Any) -> None:
        """Add the agent's call of a tool."""
        use = {"type": "tool_use", "id": use_id, "name": name, "input": arguments}
        self._add("assistant", message=_assistant([use], stop_reason="tool_use"), requestId=_name("req"))

    def add_tool_result(self, use_id: str, text: str, result: Any, *, is_error: bool = False) -> None:
        """Add what a tool returned."""
        content = [{"tool_use_id": use_id, "type": "tool_result", "content": text, "is_error": is_error}]
        self._add("user", message={"role": "user", "content": content}, toolUseResult=result)

    def add_compaction(self) -> None:
        """Add the border and the summary that a compaction leaves."""
        boundary = {"subtype": "compact_boundary", "content": "Conversation compacted", "isMeta": False}
        self._add("system", **boundary, level="info", compactMetadata={"trigger": "auto", "preTokens": 155_000})
        message = {"role": "user", "content": SUMMARY}
        self._add("user", message=message, isVisibleInTranscriptOnly=True, isCompactSummary=True)

    def _add(self, kind: str, **fields: Any) -> None:
        record = {
            "parentUuid": self._last,
            "isSidechain": False,
            "userType": "external",
            "cwd": str(self.folder),
            "sessionId": self._session_id,
            "version": VERSION,
            "gitBranch": "main",
            "type": kind,
            **fields,
            "uuid": str(uuid.uuid4()),
            "timestamp": self._now().strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z",
        }
        self._last = record["uuid"]
        self._write(record)

    def _write(self, record: Record) -> None:
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _assistant(content: list[Record], model: str = MODEL, stop_reason: str = "end_turn") -> Record:
    return {
        "id": _name("msg"),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 7, "service_tier": "standard"},
    }


def _name(kind: str) -> str:
    return f"{kind}_01{uuid.uuid4().hex[:22]}"
