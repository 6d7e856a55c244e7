"""A workspace whose clock is set by hand: memories written on given days, and jobs run on others."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pipeline.features.maintenance import usecases as maintenance
from pipeline.features.maintenance.registry import BY_NAME
from pipeline.kernel.job_runs import JobRun
from pipeline.kernel.records import Draft, Memory
from pipeline.kernel.store import memories
from pipeline.kernel.store.database import Database
from pipeline.kernel.times import utc_text
from pipeline.recall.feedback import NotedUsage, write_usage
from pipeline.write.accept import commit
from pipeline.write.prepare import prepare, prepare_fact

# Long past, so that what holds from a simulated day on holds on the real one.
FIRST_DAY = datetime(2024, 6, 3, 3, tzinfo=UTC)


def moment(day: float) -> datetime:
    """The time so many days after the first one."""
    return FIRST_DAY + timedelta(days=day)


def text_of(day: float) -> str:
    return utc_text(moment(day))


def date_on(prepared, day: float):
    """What was prepared, as if it had been offered on a day."""
    return replace(prepared, memory=replace(prepared.memory, created_at=text_of(day)))


def write(database: Database, day: float, content: str, **fields: Any) -> str:
    prepared = prepare(Draft(content, **{"occurred_at": text_of(day), **fields}))
    return commit(database, [date_on(prepared, day)])[0].id


def set_fact(database: Database, day: float, key: Any, value: Any, **fields: Any) -> str:
    prepared = prepare_fact(key, value, Draft("-", **{"occurred_at": text_of(day), **fields}))
    return commit(database, [date_on(prepared, day)])[0].id


def job_run_on(database: Database, day: float, **fields: Any) -> JobRun:
    return JobRun(database, moment(day), **fields)


def read(database: Database, memory_id: str) -> Memory:
    with database.read() as db:
        memory = memories.get(db, memory_id)
    assert memory is not None
    return memory


def after(calls: int):
    """A `pausing` that turns true after so many calls."""
    left = iter(range(calls))
    return lambda: next(left, None) is None


def state(database: Database) -> list[tuple]:
    """What jobs change, in row order."""
    with database.read() as db:
        return db.execute(
            "SELECT seq, importance, given_importance, tier, archived_at, updated_at, recall_count FROM memory "
            "ORDER BY seq"
        ).fetchall()


def replace_job(monkeypatch, name: str, function) -> None:
    """Let a job do something else."""
    changed = {**maintenance.BY_NAME, name: replace(BY_NAME[name], function=function)}
    monkeypatch.setattr(maintenance, "BY_NAME", changed)


class Killed(Exception):
    """What ends a run in the middle."""


def count_accesses(database: Database, counts: dict[int, int], at: str) -> int:
    """Note that memories were recalled so often, by row number."""
    with database.write() as db:
        return write_usage(db, NotedUsage(counts), at)
