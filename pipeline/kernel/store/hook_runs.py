"""Runs of hooks and tools: what agents were shown, or why nothing was; kept for two weeks."""

from collections.abc import Mapping
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

from pipeline.kernel.store.rows import Rows, Table
from pipeline.kernel.store.visibility import named_by_condition

KEPT_S = 14 * 86_400.0
KEPT_RUNS = 20_000
# The part of a trace with the lines that were not shown.
LEFT_OUT = "left_out"


@dataclass(frozen=True, slots=True)
class HookRun:
    """A host's event or a tool call (`at` in seconds since the epoch), and the text that the agent got."""

    at: float
    event: str
    host: str
    workspace: str
    session_id: str | None
    took_ms: float
    outcome: str
    memory_ids: tuple[str, ...] = ()
    reason: str | None = None
    text: str = ""
    trace: Mapping[str, Any] | None = None
    seq: int = 0

    @property
    def id(self) -> str:
        """Return the run's id."""
        return str(self.seq)

    @property
    def chars(self) -> int:
        """Return the number of characters that the agent got."""
        return len(self.text)

    @property
    def left_out(self) -> list[Mapping[str, Any]]:
        """Return the lines that were not shown: `key`, `source`, `text`, `score` and `reason` of each."""
        return [] if self.trace is None else list(self.trace.get(LEFT_OUT, ()))


_RUNS = Rows(HookRun, "hook_run")
# Of a run that left a purged memory out, only what it left out is erased.
_ERASED = "text = '', trace = NULL, reason = 'its memories were purged'"


def add(db: Connection, run: HookRun) -> None:
    """Store a run; delete old runs."""
    (seq,) = db.execute(f"{_RUNS.insert} RETURNING seq", _RUNS.values(run)).fetchone()
    db.execute("DELETE FROM hook_run WHERE seq <= ? OR at < ?", (seq - KEPT_RUNS, run.at - KEPT_S))


def page(
    db: Connection,
    limit: int,
    before: int | None,
    workspace: str | None = None,
    session_id: str | None = None,
    person: str | None = None,
) -> list[HookRun]:
    """List a person's runs, the latest first, below a row number; of one workspace or session, or of all."""
    return _RUNS.fetch(
        db,
        f"WHERE seq < ? AND (CAST(? AS TEXT) IS NULL OR workspace = ?) "
        f"AND (CAST(? AS TEXT) IS NULL OR session_id = ?) AND {named_by_condition('session_id', person)} "
        "ORDER BY seq DESC LIMIT ?",
        (2**62 if before is None else before, workspace, workspace, session_id, session_id, limit),
    )


def get(db: Connection, seq: int) -> HookRun | None:
    """Return a run."""
    return _RUNS.fetch_one(db, "WHERE seq = ?", (seq,))


def find_next(db: Connection, run: HookRun) -> HookRun | None:
    """Return the next run of the same event in a session."""
    return _RUNS.fetch_one(
        db, "WHERE session_id = ? AND event = ? AND seq > ? ORDER BY seq LIMIT 1", (run.session_id, run.event, run.seq)
    )


def forget_session(db: Connection, session_id: str, since: float) -> None:
    """Delete the runs of a session since a time (seconds)."""
    db.execute("DELETE FROM hook_run WHERE session_id = ? AND at >= ?", (session_id, since))


TABLES = (
    Table(
        "hook_run",
        text=("text", "reason", "trace"),
        quoting={"memory_ids": _ERASED, "text": _ERASED, "reason": _ERASED, "trace": "trace = NULL"},
        has_workspace=True,
    ),
)
