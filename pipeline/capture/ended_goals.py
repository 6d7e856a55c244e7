"""Close goals that a person says are reached, dropped or replaced."""

import re
from collections.abc import Sequence
from functools import cache
from sqlite3 import Connection

from pipeline.records import GoalStatus, Kind, Memory
from pipeline.store import changes, memories
from pipeline.text.lexicon import load_lexicon
from pipeline.times import utc_now


def close_goals(db: Connection, superseded: Sequence[Memory], message: str) -> None:
    """Mark the goals among superseded memories as done if the message says so, otherwise as dropped."""
    closed = [memory for memory in superseded if memory.kind is Kind.GOAL]
    status = GoalStatus.DONE if _reached().search(message) else GoalStatus.DROPPED
    for goal in closed:
        memories.update(db, goal.seq, {"details": {**goal.details, "status": status}}, utc_now())
    if closed:
        changes.append(db, changes.EDIT, [goal.id for goal in closed])


@cache
def _reached() -> "re.Pattern[str]":
    return re.compile(rf"\b(?:{load_lexicon('said_changes').alternatives('reached')})", re.IGNORECASE)
