import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pipeline.kernel.times import utc_text

HERE = Path(__file__).parent
FAKE_SECRET = "hunter2-not-real"  # noqa: S105  it is made up, to be seen redacted
# The files describe a week that starts on this Monday and ends on its Friday at this hour.
MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
LENGTH = timedelta(days=4, hours=17)
WEEK = timedelta(weeks=1)

# Who speaks (`user`, `agent`) and the text; `run` or `fails` with a command; `edit` with a path. A failed command
# also has its exit code and output.
Entry = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Session:
    """A session with a coding agent: its name, its start (UTC), and what was said and done."""

    id: str
    title: str | None
    start: datetime
    entries: Sequence[Entry]


@dataclass(frozen=True, slots=True)
class Sample:
    """The last complete week of a developer: its Monday, memories as bodies of the API, and sessions."""

    monday: datetime
    memories: tuple[Mapping[str, Any], ...]
    sessions: tuple[Session, ...]


def load_sample(now: datetime, folder: Path = HERE) -> Sample:
    """Read the week that ships with the demonstration, and move it to the last week that was over before a time."""
    shift = (now - MONDAY - LENGTH) // WEEK * WEEK
    lines = (folder / "memories.jsonl").read_text(encoding="utf-8").splitlines()
    sessions = json.loads((folder / "sessions.json").read_text(encoding="utf-8"))
    return Sample(
        MONDAY + shift,
        tuple(_move(json.loads(line), shift) for line in lines),
        tuple(
            Session(one["id"], one["title"], datetime.fromisoformat(one["start"]) + shift, one["entries"])
            for one in sessions
        ),
    )


def _move(memory: Mapping[str, Any], shift: timedelta) -> dict[str, Any]:
    return {**memory, "occurred_at": utc_text(datetime.fromisoformat(memory["occurred_at"]) + shift)}


def exact_repeats(memories: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    """Return the positions of memories with the same content as an earlier one."""
    seen: set[str] = set()
    repeats = []
    for position, memory in enumerate(memories):
        if memory["content"] in seen:
            repeats.append(position)
        seen.add(memory["content"])
    return tuple(repeats)


def secret_position(memories: Sequence[Mapping[str, Any]]) -> int:
    """Return the position of the memory that contains the fake secret."""
    return next(i for i, memory in enumerate(memories) if FAKE_SECRET in memory["content"])
