"""An agent whose transcripts are files of JSON lines, and a reader for them."""

import json
import os
import sys
from collections import Counter
from pathlib import Path

from pipeline.kernel.store.turns import Role
from pipeline.sessions.readers import reader
from pipeline.sessions.readers.reader import Places, Said, SessionHead, SessionPart, ToolUse, TranscriptFile

AGENT = "fake"
PART_LINES = 4


def write_session(
    folder: Path, name: str, records: list[dict], *, cwd: str, session: str | None = None, at=None
) -> Path:
    """Write the transcript of a session; `at` is the file's time of change."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.jsonl"
    head = {"session": session or name, "cwd": cwd}
    file.write_text("".join(json.dumps(record) + "\n" for record in [head, *records]))
    if at is not None:
        os.utime(file, (at, at))
    return file


def append_records(file: Path, records: list[dict], *, at: float) -> None:
    """Let a session go on."""
    with file.open("a") as lines:
        lines.writelines(json.dumps(record) + "\n" for record in records)
    os.utime(file, (at, at))


def user(content: str, at: str | None) -> dict:
    """Return what a person said."""
    return {"role": "user", "content": content, "at": at}


def assistant(content: str, at: str | None) -> dict:
    """Return what the agent said."""
    return {"role": "assistant", "content": content, "at": at}


def ran(command: str, at: str | None, **result) -> dict:
    """Return a command that the agent ran."""
    return {"tool": "Bash", "arguments": {"command": command}, "at": at, **result}


def places(home: Path) -> Places:
    """Return where the fake agent keeps its files."""
    return Places(home, {}, sys.platform)


class Reader:
    """Read them, some lines a part; a mark is the number of lines read and the first line."""

    agent = AGENT

    def discover(self, places: Places):
        for path in sorted((places.home / ".fake").glob("*.jsonl")):
            status = path.stat()
            yield TranscriptFile(AGENT, path, status.st_size, status.st_mtime)

    def read(self, file: TranscriptFile, mark: str | None):
        lines = file.path.read_text().splitlines()
        start = 1
        if mark is not None:
            count, _, digest = mark.partition(" ")
            start = int(count) if digest == _digest(lines) else 1
        head = json.loads(lines[0])
        for number in range(start, len(lines), PART_LINES):
            part = lines[number : number + PART_LINES]
            entries = tuple(_entry(json.loads(line)) for line in part)
            session = SessionHead(AGENT, head["session"], head["cwd"], "main")
            yield SessionPart(session, entries, f"{number + len(part)} {_digest(lines)}", Counter(tool_output=1))


def _digest(lines: list[str]) -> str:
    # The head and the first message: an appended file has the same, a rewritten one usually not.
    return str(abs(hash("".join(lines[:2]))))


def _entry(record: dict):
    if "role" in record:
        return Said(Role(record["role"]), record["content"], record["at"], record.get("id"))
    return ToolUse(**record)


def install(monkeypatch) -> None:
    """Make it the only agent."""
    monkeypatch.setattr(reader, "READERS", {AGENT: ("Fake", "fake")})
    monkeypatch.setattr("pipeline.sessions.import_usecases.READERS", {AGENT: ("Fake", "fake")})
    monkeypatch.setattr("pipeline.sessions.watch.READERS", {AGENT: ("Fake", "fake")})
    monkeypatch.setitem(sys.modules, "pipeline.sessions.readers.fake", sys.modules[__name__])
