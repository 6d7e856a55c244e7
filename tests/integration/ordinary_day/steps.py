"""The steps of the ordinary day, as `tests/data/ordinary_day.jsonl` has them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[2] / "data" / "ordinary_day.jsonl"
OUTSIDE = "outside"
# What a step does: each has one of these.
ACTIONS = ("start", "say", "tool", "end", "mcp", "cli", "http")


@dataclass(frozen=True, slots=True)
class Step:
    """One line: what is done, and what must be true then."""

    step: int
    day: int
    at: str
    project: str
    topic: int
    why: str = ""
    language: str = "en"
    session: str | None = None
    start: str | None = None
    forked_from: str | None = None
    say: str | None = None
    reply: str | None = None
    interrupted: bool = False
    failed: bool = False
    tool: Mapping[str, Any] | None = None
    end: bool = False
    mcp: Mapping[str, Any] | None = None
    cli: Sequence[str] | None = None
    http: Mapping[str, Any] | None = None
    shown: Sequence[str | list[str]] = ()
    first: str | None = None
    silent: bool | Sequence[str] = False
    in_session: bool = False
    blocked: bool | None = None
    refused: str | None = None
    stored: Sequence[Mapping[str, str]] = ()
    not_stored: Sequence[str] = ()
    gone: Sequence[str] = ()

    @property
    def action(self) -> str:
        """Return the name of what the step does."""
        return next(name for name in ACTIONS if getattr(self, name))

    def describe(self) -> str:
        """Return in one line what is done."""
        value = getattr(self, self.action)
        text = json.dumps(value, ensure_ascii=False)
        where = self.project if self.session is None else f"{self.project}/{self.session}"
        return f"{where} {self.action}: {text}"


def read_steps(file: Path = FILE) -> list[Step]:
    """Read all steps in order; raise for a field that no step has."""
    names = {field.name for field in fields(Step)}
    steps = []
    for line in file.read_text(encoding="utf-8").splitlines():
        values = json.loads(line)
        assert names >= set(values), (values["step"], set(values) - names)
        steps.append(Step(**values))
    return steps
