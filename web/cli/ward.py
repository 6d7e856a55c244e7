"""What the doctor looks at in each workspace: its queue, its indexes, its jobs, its copies, its errors."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from pipeline.errors import ReverieError
from pipeline.store import runs, work
from pipeline.store.database import Database, WriterProfile
from web.cli.checks import Finding, Patient
from web.cli.render import format_duration

OLDEST_PENDING_S = 600.0
OLDEST_SNAPSHOT = timedelta(days=3)
RECENT_ERRORS_S = 24 * 3600.0
ERRORS_READ = 100
SELF = "permissions"


def workspace(patient: Patient, name: str) -> Iterator[Finding]:
    """Look at one workspace."""
    from pipeline.store.backup import count_memories
    from pipeline.store.migrations import MIGRATIONS
    from pipeline.store.opening import is_migrated

    yield from _settings(patient, name)
    file = patient.paths.workspace(name).events
    try:
        count_memories(file)
    except ReverieError as error:
        hint = f"`reverie -w {name} snapshot restore latest` puts a copy back"
        yield Finding(f"{name}: store", "fail", f"{file}: {error}", hint)
        return
    if not is_migrated(file, MIGRATIONS):
        told, hint = "the store is of an older version", "the next start brings it up to date, after a copy"
        yield Finding(f"{name}: store", "warn", told, hint)
        return
    try:
        database = Database(file, WriterProfile("NORMAL", 0, patient.settings.busy_timeout_ms), create=False)
    except ReverieError as error:
        yield Finding(f"{name}: store", "fail", str(error), "`reverie errors` may tell more")
        return
    try:
        yield from _queue(patient, name, database)
        yield from _indexes(patient, name, database)
        yield from _jobs(name, database)
        yield from _errors(patient, name)
        yield from _snapshots(patient, name)
    finally:
        database.close()


def _settings(patient: Patient, name: str) -> Iterator[Finding]:
    from config.settings import SettingsError, environment_of, load_settings

    file = patient.paths.workspace(name).config
    if not file.exists():
        return
    try:
        load_settings(environment_of(patient.paths), name)
    except SettingsError as error:
        hint = "correct it; until then nothing is stored in this workspace"
        yield Finding(f"{name}: settings", "fail", str(error), hint)
    else:
        yield Finding(f"{name}: settings", "ok", str(file))


def _queue(patient: Patient, name: str, database: Database) -> Iterator[Finding]:
    with database.read() as db:
        pending, dead, oldest = sum(work.pending(db).values()), work.dead(db), work.oldest_pending(db)
    waits_s = 0.0 if oldest is None else max(0.0, time.time() - oldest)
    failed = {stage: count for stage, count in dead.items() if count}
    if failed:
        told = ", ".join(f"{stage} {count}" for stage, count in failed.items())
        hint = f"`reverie -w {name} queue retry` gives them a fresh start"
        yield Finding(f"{name}: queue", "fail", f"failed for good: {told}", hint, lambda: _retried(patient, name))
    elif waits_s > OLDEST_PENDING_S and patient.is_up:
        hint = "`reverie status` tells whether workers run, `reverie errors` what stops them"
        yield Finding(f"{name}: queue", "warn", f"{pending} wait, the oldest for {format_duration(waits_s)}", hint)
    else:
        yield Finding(f"{name}: queue", "ok", f"{pending} pending")


def _retried(patient: Patient, name: str) -> str:
    database = Database(
        patient.paths.workspace(name).events,
        WriterProfile("NORMAL", 0, patient.settings.busy_timeout_ms),
        create=False,
    )
    try:
        # Nobody is notified: the scheduler's sweep finds it.
        with database.write() as db:
            return f"{work.retry(db, None)} queued again"
    finally:
        database.close()


def _indexes(patient: Patient, name: str, database: Database) -> Iterator[Finding]:
    from pipeline.jobs.health import examine

    # The permissions of the whole home are looked at elsewhere.
    problems = [p for p in examine(database, patient.paths.workspace(name)) if p.check != SELF]
    for problem in problems:
        if problem.repairable:
            hint = f"`reverie -w {name} sleep health` repairs it"
            yield Finding(f"{name}: indexes", "warn", problem.says, hint, _job(patient, name, "health"))
        else:
            hint = f"`reverie -w {name} snapshot list` shows the copies that can be put back"
            yield Finding(f"{name}: store", "fail", problem.says, hint)
    if not problems:
        yield Finding(f"{name}: indexes", "ok", "store and indexes agree")


def _job(patient: Patient, name: str, job: str) -> Callable[[], str]:
    def mend() -> str:
        from pipeline.bootstrap.back import Back

        back = Back(patient.settings)
        try:
            outcome = back.run_job(name, job, lambda: False, lambda _done, _total: None)
        finally:
            back.close()
        if outcome is None:
            return f"{job} runs now elsewhere"
        if outcome.error:
            return f"{job} failed: {outcome.error}"
        counts = ", ".join(f"{key} {count}" for key, count in outcome.report.counts.items())
        return f"{job} found and repaired: {counts or 'nothing'}"

    return mend


def _jobs(name: str, database: Database) -> Iterator[Finding]:
    from pipeline.jobs.appointments import BY_NAME

    with database.read() as db:
        last = {job: runs.last(db, job) for job in BY_NAME}
    failed = [(job, run) for job, run in last.items() if run is not None and run.ok is False]
    for job, run in failed:
        hint = f"`reverie -w {name} sleep {job}` runs it now and tells more"
        yield Finding(f"{name}: jobs", "warn", f"{job} failed last: {run.error}", hint)
    if not failed:
        yield Finding(f"{name}: jobs", "ok", f"{sum(run is not None for run in last.values())} have run, none failed")


def _errors(patient: Patient, name: str) -> Iterator[Finding]:
    from pipeline.bootstrap.parts import mask
    from pipeline.store.operations import Operations

    found: list[Any] = []
    if patient.paths.operations.exists():
        operations = Operations(patient.paths.operations, mask)
        try:
            found = operations.errors(workspace=name, limit=ERRORS_READ)
        finally:
            operations.close()
    recent = [error for error in found if error.at >= time.time() - RECENT_ERRORS_S]
    if recent:
        told = f"{len(recent)} in the last day, the last in {recent[0].component}: {recent[0].message}"
        yield Finding(f"{name}: errors", "warn", told, f"`reverie -w {name} errors` lists them")
    else:
        yield Finding(f"{name}: errors", "ok", "none in the last day")


def _snapshots(patient: Patient, name: str) -> Iterator[Finding]:
    from pipeline.store.backup import snapshots

    found = snapshots(patient.paths.workspace(name).snapshots)
    now = datetime.now(UTC)
    hint = f"`reverie -w {name} snapshot take` takes one; with the stack up, every night does"
    if not found:
        yield Finding(f"{name}: snapshots", "warn", "there is none yet", hint, lambda: _taken(patient, name))
    elif now - found[0].at > OLDEST_SNAPSHOT:
        told = f"the newest is {(now - found[0].at).days} days old"
        yield Finding(f"{name}: snapshots", "warn", told, hint, lambda: _taken(patient, name))
    else:
        yield Finding(f"{name}: snapshots", "ok", f"{len(found)}, the newest {found[0].name}")


def _taken(patient: Patient, name: str) -> str:
    from pipeline.jobs.snapshot import take_snapshot

    return f"took {take_snapshot(patient.paths.workspace(name), datetime.now(UTC)).name}"
