"""The meter of the optional language model: calls, failures and tokens of each job and day (UTC, `2026-11-21`)."""

from dataclasses import dataclass
from sqlite3 import Connection


@dataclass(frozen=True, slots=True)
class ModelUse:
    """What one job spent on one day; what is reserved for calls that did not end yet counts as spent."""

    day: str
    job: str
    calls: int
    failures: int
    tokens: int


def reserve(db: Connection, day: str, job: str, tokens: int, cap: int) -> bool:
    """Reserve the tokens of a call unless they would go over the day's cap; return whether they are reserved."""
    if spent(db, day) + tokens > cap:
        return False
    db.execute(
        "INSERT INTO model_use VALUES (?, ?, 1, 0, ?) "
        "ON CONFLICT DO UPDATE SET calls = calls + 1, tokens = tokens + excluded.tokens",
        (day, job, tokens),
    )
    return True


def correct(db: Connection, day: str, job: str, tokens: int) -> None:
    """Add tokens to what a job spent; negative ones give back what a call did not need."""
    db.execute("UPDATE model_use SET tokens = max(0, tokens + ?) WHERE day = ? AND job = ?", (tokens, day, job))


def count_failure(db: Connection, day: str, job: str) -> None:
    """Count a call whose answer was of no use."""
    db.execute("UPDATE model_use SET failures = failures + 1 WHERE day = ? AND job = ?", (day, job))


def spent(db: Connection, day: str) -> int:
    """Return the tokens that all jobs spent on a day."""
    return int(db.execute("SELECT coalesce(sum(tokens), 0) FROM model_use WHERE day = ?", (day,)).fetchone()[0])


def page(db: Connection, limit: int) -> list[ModelUse]:
    """List what was spent, newest day first."""
    rows = db.execute(
        "SELECT day, job, calls, failures, tokens FROM model_use ORDER BY day DESC, job LIMIT ?", (limit,)
    )
    return [ModelUse(*row) for row in rows]
