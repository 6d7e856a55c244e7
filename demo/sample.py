import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FAKE_SECRET = "hunter2-not-real"  # noqa: S105  it is made up, to be seen redacted
SMALL_TALK = "thanks!"


@dataclass(frozen=True, slots=True)
class Question:
    """A recall to ask, a text that the first memory must contain, and what the question shows."""

    ask: str
    expect: str
    why: str


@dataclass(frozen=True, slots=True)
class FactQuestion:
    """A fact to read as of a time, its value then, and what the question shows."""

    subject: str
    attribute: str
    as_of: str
    expect: str
    why: str


@dataclass(frozen=True, slots=True)
class Sample:
    """The history as bodies of `POST /v1/memories/batch`, the recalls, the facts to read, and the one hook prompt."""

    history: tuple[Mapping[str, Any], ...]
    recalls: tuple[Question, ...]
    facts: tuple[FactQuestion, ...]
    hook: Question


def load_sample(folder: Path = HERE) -> Sample:
    """Read the history and the questions that ship with the demonstration."""
    lines = (folder / "history.jsonl").read_text(encoding="utf-8").splitlines()
    entries = json.loads((folder / "questions.json").read_text(encoding="utf-8"))
    recalls = tuple(Question(e["ask"], e["expect"], e["why"]) for e in entries if "ask" in e)
    facts = tuple(
        FactQuestion(e["fact"][0], e["fact"][1], e["as_of"], e["expect"], e["why"]) for e in entries if "fact" in e
    )
    (hook,) = (Question(e["prompt"], e["expect"], e["why"]) for e in entries if "prompt" in e)
    return Sample(tuple(json.loads(line) for line in lines), recalls, facts, hook)


def exact_repeats(history: tuple[Mapping[str, Any], ...]) -> tuple[int, ...]:
    """Return the positions of memories whose content an earlier one has, letter for letter."""
    seen: set[str] = set()
    repeats = []
    for position, memory in enumerate(history):
        if memory["content"] in seen:
            repeats.append(position)
        seen.add(memory["content"])
    return tuple(repeats)


def secret_position(history: tuple[Mapping[str, Any], ...]) -> int:
    """Return the position of the memory that carries the fake secret."""
    return next(i for i, memory in enumerate(history) if FAKE_SECRET in memory["content"])
