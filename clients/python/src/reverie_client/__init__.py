"""A client of Reverie, memory for AI coding agents: `Reverie` and, for asyncio, `AsyncReverie`."""

from .answers import Briefing, Event, Fact, Goal, Hit, Lesson, Memory, MemoryRecord, RecallAnswer, Receipt, Scope, Stats
from .calls import NewMemory, Viewer
from .client import AsyncReverie, Reverie
from .errors import (
    Conflict,
    FieldProblem,
    Forbidden,
    InvalidField,
    NotConfigured,
    NotFound,
    Problem,
    ReverieError,
    ServerUnreachable,
    Unauthorized,
    Unavailable,
    UnexpectedAnswer,
)

__all__ = [
    "AsyncReverie",
    "Briefing",
    "Conflict",
    "Event",
    "Fact",
    "FieldProblem",
    "Forbidden",
    "Goal",
    "Hit",
    "InvalidField",
    "Lesson",
    "Memory",
    "MemoryRecord",
    "NewMemory",
    "NotConfigured",
    "NotFound",
    "Problem",
    "RecallAnswer",
    "Receipt",
    "Reverie",
    "ReverieError",
    "Scope",
    "ServerUnreachable",
    "Stats",
    "Unauthorized",
    "Unavailable",
    "UnexpectedAnswer",
    "Viewer",
]
