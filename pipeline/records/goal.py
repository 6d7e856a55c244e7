"""Goals."""

from enum import StrEnum


class GoalStatus(StrEnum):
    """How far a goal has come."""

    OPEN = "open"
    IN_PROGRESS = "in_progress"
    DONE = "done"
    DROPPED = "dropped"
