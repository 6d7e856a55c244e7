"""Read the sessions of Antigravity: logs of steps, in which the result of a call is the step after it."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from pipeline.kernel.store.turns import Role
from pipeline.sessions.readers.fields import as_list, as_mapping, as_text, find_exit_code, parse_json
from pipeline.sessions.readers.log_reader import LogReader, list_files
from pipeline.sessions.readers.reader import Places, SessionHead, TranscriptFile
from pipeline.sessions.readers.session_log import LeftOut, SessionLog

AGENT = "antigravity"
FULL = "transcript_full.jsonl"
CUT = "transcript.jsonl"
_REQUEST = re.compile(r"<USER_REQUEST>(?P<text>.*?)(?:<ADDITIONAL_METADATA>|</USER_REQUEST>|\Z)", re.DOTALL)
_METADATA = re.compile(r"<ADDITIONAL_METADATA>(?P<text>.*?)(?:</ADDITIONAL_METADATA>|\Z)", re.DOTALL)
_FOLDER = re.compile(r"\"(?:cwd|workspace)\"\s*:\s*\"(?P<path>(?:[^\"\\]|\\.)+)\"")
_EXIT_CODE = re.compile(r"\bexit code:? (?P<code>-?\d{1,9})\b", re.IGNORECASE)
_DROPPED = {
    "SYSTEM_MESSAGE": LeftOut.INJECTED,
    "CONVERSATION_HISTORY": LeftOut.COPY,
    "CHECKPOINT": LeftOut.SUMMARY,
    "EPHEMERAL_MESSAGE": LeftOut.INJECTED,
    "KNOWLEDGE_ARTIFACTS": LeftOut.INJECTED,
}


class Reader(LogReader):
    """Reader of Antigravity's transcripts."""

    agent: ClassVar[str] = AGENT

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the transcripts of the command line program and of the editor."""
        for program in ("antigravity-cli", "antigravity"):
            yield from list_files(AGENT, places.home / ".gemini" / program / "brain", _is_transcript)

    def open_session(self, file: TranscriptFile, state: Mapping[str, Any]) -> "AntigravitySession":
        """Return the session of a file, whose folder is named by its id."""
        return AntigravitySession(SessionHead(AGENT, file.path.parents[2].name or file.path.stem), state)


def _is_transcript(path: Path) -> bool:
    return path.parent.name == "logs" and (
        path.name == FULL or (path.name == CUT and not path.with_name(FULL).exists())
    )


class AntigravitySession(SessionLog):
    """The entries of a conversation."""

    def take_record(self, step: Mapping[str, Any]) -> None:
        """Read a step."""
        kind, source, at = as_text(step.get("type")), as_text(step.get("source")), step.get("created_at")
        content, step_id = (
            as_text(step.get("content")),
            f"step {step.get('step_index')}" if "step_index" in step else "",
        )
        self.learn_record(cwd=self.head.cwd, branch=self.head.branch, at=at)
        if kind in _DROPPED:
            self.left_out[_DROPPED[kind]] += 1
        elif kind == "USER_INPUT" or (not kind and source == "USER_EXPLICIT"):
            self._take_request(content, at, step_id)
        elif kind == "PLANNER_RESPONSE" or (not kind and source == "MODEL"):
            self.say(Role.ASSISTANT, content, at, step_id)
            for number, call in enumerate(as_list(step.get("tool_calls"))):
                self._take_call(as_mapping(call), at, f"{step_id or at} call {number}")
        elif kind and self.calls and "status" in step:
            self._take_result(as_text(step.get("status")), content)
        else:
            self.left_out[LeftOut.OUTPUT if kind else LeftOut.UNKNOWN] += 1

    def _take_request(self, content: str, at: Any, step_id: str) -> None:
        metadata = _METADATA.search(content)
        folder = _FOLDER.search(metadata["text"]) if metadata else None
        if folder:
            self.learn(cwd=as_text(_read_text(f'"{folder["path"]}"')))
        request = _REQUEST.search(content)
        self.say_prompt(request["text"] if request else _METADATA.sub("", content), at, step_id)

    def _take_call(self, call: Mapping[str, Any], at: Any, key: str) -> None:
        given = {name: _read_text(value) for name, value in as_mapping(call.get("args")).items()}
        self.learn(cwd=as_text(given.pop("Cwd", None)))
        self.record_call(key, call.get("name"), given, at)

    def _take_result(self, status: str, content: str) -> None:
        """Finish the oldest open call: results come in the order of the calls."""
        key = next(iter(self.calls))
        if status in ("CANCELED", "CANCELLED", "REJECTED"):
            self.drop_call(key)
            return
        is_command = self.calls[key].tool == "Bash"
        match = _EXIT_CODE.search(content[:2000]) if is_command else None
        code = int(match["code"]) if match else find_exit_code(content) if is_command else None
        self.finish(key, ok=status != "ERROR" and code in (None, 0), output=content, exit_code=code)


def _read_text(value: Any) -> Any:
    """Return an argument, which may be written as JSON within JSON."""
    is_quoted = isinstance(value, str) and value[:1] == value[-1:] == '"'
    text = parse_json(value) if is_quoted else None
    return value if text is None else text
