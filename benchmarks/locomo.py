"""LoCoMo (Maharana et al., ACL 2024) as memories and questions: one memory a dialog turn, evidence turns as sources.

The data is not part of this repository (CC BY-NC 4.0); pass the path of a copy.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.questions import Question

TURN_S = 20


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation's turns as memories, and the questions of which the evidence is known."""

    name: str
    memories: list[dict[str, Any]]
    questions: list[Question]


def conversations(file: Path) -> Iterator[Conversation]:
    """Yield the conversations of a LoCoMo file."""
    for sample in json.loads(file.read_text(encoding="utf-8")):
        name = sample["sample_id"].lower()
        turns = dict(_turns(name, sample["conversation"]))
        places = {turn: place for place, turn in enumerate(turns)}
        asked = [
            Question(item["question"], f"category {item['category']}", sources)
            for item in sample["qa"]
            if (sources := tuple(places[turn] for turn in item.get("evidence", []) if turn in places))
        ]
        yield Conversation(name, list(turns.values()), asked)


def _turns(name: str, conversation: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for session in sorted((key for key in conversation if re.fullmatch(r"session_\d+", key)), key=_number):
        said = f"{conversation[f'{session}_date_time'].upper()} +0000"
        spoken = datetime.strptime(said, "%I:%M %p ON %d %B, %Y %z")
        for place, turn in enumerate(conversation[session]):
            shared = f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            moment = spoken + timedelta(seconds=TURN_S * place)
            yield (
                turn["dia_id"],
                {
                    "content": f"{turn['speaker']}: {turn['text']}{shared}",
                    "kind": "episode",
                    "session_id": f"{name}/{session}",
                    "source": "import",
                    "occurred_at": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
                },
            )


def _number(session: str) -> int:
    return int(session.rsplit("_", 1)[1])
