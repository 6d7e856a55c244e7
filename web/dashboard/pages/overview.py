"""Overview: what is known and how it grew, what happened today, whether all is well and of use, what to do next."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache, partial
from sqlite3 import Connection

from flask import url_for

from config.owner import is_alive
from pipeline.jobs.registry import NIGHTLY, scheduled_jobs
from pipeline.jobs.status import JobState, JobStatus, job_statuses
from pipeline.records import OWNER, Memory
from pipeline.services.operations import SCORED
from pipeline.store import arcs, backup, changes, entities, goals, impressions, memories, pairs, predictions, work
from pipeline.store import growth as counts
from pipeline.store.arcs import ArcStatus
from pipeline.store.database import Database
from pipeline.times import utc_text
from web.dashboard.growth import Growth, growth
from web.dashboard.pages.goals import due_in_words
from web.dashboard.view import Section, View, show
from web.hosts import install_state

section = Section("overview")

SHOWN_CHANGES = 8
SHOWN_GOALS = 6
SHOWN_ARCS = 5
USEFUL_FOR = timedelta(days=30)
# Among so many of the latest memories one of an agent's would be, if any agent were connected.
LOOKED_AT = 500

# How a day is told; what only makes memories better, fading and linking, is left out.
DONE: Mapping[str, str] = {
    changes.CREATE: "written",
    changes.EDIT: "edited",
    changes.MERGE: "merged",
    changes.ARCHIVE: "archived",
    changes.RESTORE: "restored",
    changes.CLOSE: "ended",
    changes.PURGE: "purged",
}


@dataclass(frozen=True, slots=True)
class Change:
    """Something that was done today, and the memory that it was done to unless that is purged since."""

    at: str
    done: str
    memory: Memory | None


@dataclass(frozen=True, slots=True)
class Health:
    """How the queue and the nights fare; `nights` are the nightly jobs that ran since the last night began."""

    pending: int
    dead: int
    oldest_at: str | None
    workers: int
    running: tuple[JobStatus, ...]
    failed: tuple[JobStatus, ...]
    nights: tuple[JobStatus, ...]
    night_began: str
    errors: int
    snapshot_at: str | None


@dataclass(frozen=True, slots=True)
class Hint:
    """What its reader would do next: in words, and where or how it is done."""

    text: str
    label: str = ""
    path: str = ""
    command: str = ""


@section.page("/")
def home(view: View) -> str:
    """Show how the workspace fares."""
    midnight = midnight_before(view.now)
    with view.read() as db:
        known, done = _counted(view.database, changes.generation(db), counts.waiting(db), midnight)
        health = _health(view, db, midnight)
        unfinished = goals.unfinished(db, OWNER, SHOWN_GOALS)
        found = {
            "facts": counts.facts_that_hold(db, utc_text(view.now)),
            "entities": entities.count(db),
            "growth": _growth(db),
            "latest": _latest(db, midnight),
            "goals": unfinished,
            "dues": {goal.seq: due_in_words(goal, view.now) for goal in unfinished},
            "arcs": arcs.page(db, OWNER, ArcStatus.ACTIVE, SHOWN_ARCS, None),
            "lessons": impressions.tally_since(db, utc_text(view.now - USEFUL_FOR)),
            "foreseen": predictions.score(db, utc_text(view.now - SCORED)[:10]),
            "hints": _hints(view, db, known.candidates + pairs.count_waiting(db), health),
        }
    named = [(word, done[op]) for op, word in DONE.items() if done.get(op)]
    return show("overview.html", view, title="Overview", known=known, health=health, done=named, **found)


def midnight_before(now: datetime) -> datetime:
    """Return when the local day of a moment began."""
    return datetime.combine(now.astimezone().date(), time.min).astimezone()


def night_before(now: datetime) -> datetime:
    """Return when the last night before a moment began."""
    return NIGHTLY.last_before(now)


@lru_cache(maxsize=32)
def _counted(
    database: Database,
    generation: int,  # noqa: ARG001 - what changes is counted anew
    waiting: int,  # noqa: ARG001 - what becomes of a candidate is no change of what is known
    midnight: datetime,
) -> tuple[counts.Known, Mapping[str, int]]:
    """Return what is known, and what was done since midnight; the caller reads the store as of the generation."""
    with database.read() as db:
        return counts.known(db), changes.tally_since(db, midnight)


def _growth(db: Connection) -> Growth | None:
    ends = counts.span(db)
    if ends is None:
        return None
    first, last = (date.fromisoformat(moment[:10]) for moment in ends)
    return growth(first, last, partial(counts.happened_between, db))


def _latest(db: Connection, midnight: datetime) -> list[Change]:
    found = changes.latest_since(db, midnight, list(DONE), SHOWN_CHANGES)
    return [Change(utc_text(at), DONE[one.op], memories.get(db, one.memory_id)) for at, one in found]


def _health(view: View, db: Connection, midnight: datetime) -> Health:
    began = utc_text(night_before(view.now))
    jobs = job_statuses(db, scheduled_jobs(view.front.settings), view.now)
    ran = [job for job in jobs if job.job.schedule == NIGHTLY and job.last and (job.last.started_at or "") >= began]
    oldest = work.oldest_pending(db)
    copies = backup.snapshots(view.front.settings.paths.workspace(view.workspace_id).snapshots)
    return Health(
        sum(work.pending(db).values()),
        sum(work.dead(db).values()),
        None if oldest is None else utc_text(datetime.fromtimestamp(oldest, UTC)),
        sum(is_alive(worker.owner) for worker in view.front.operations.workers()),
        tuple(job for job in jobs if job.state is JobState.RUNNING),
        tuple(job for job in jobs if job.state is JobState.FAILED),
        tuple(ran),
        began,
        view.front.operations.errors_since(view.workspace_id, midnight.timestamp()),
        utc_text(copies[0].at) if copies else None,
    )


def _hints(view: View, db: Connection, waiting: int, health: Health) -> list[Hint]:
    settings = view.front.workspace_settings(view.workspace_id)
    found = []
    if settings.incognito:
        text = "This workspace is off the record: nothing that is said in it is stored."
        found.append(Hint(text, "Settings", url_for("dashboard.settings_every")))
    if health.pending and not health.workers:
        found.append(Hint("Work waits and no worker runs.", command="reverie up"))
    if health.dead:
        text = f"Digestion gave up on {health.dead} piece{'s' * (health.dead > 1)} of work."
        found.append(Hint(text, "See why, and try again", f"{url_for('dashboard.workers_state')}#dead"))
    if waiting:
        text = f"{waiting} decision{'s' * (waiting > 1)} wait{'s' * (waiting == 1)} for you."
        found.append(Hint(text, "Open the inbox", url_for("dashboard.inbox_review_entries")))
    if not install_state.read_state(view.front.settings.paths.root) and not counts.is_told_by_agents(db, LOOKED_AT):
        text = "No agent has used this workspace yet. Connected ones remember and recall by themselves."
        found.append(Hint(text, command="reverie setup"))
    if health.snapshot_at is None:
        text = "There is no copy of this workspace yet; the first night makes one."
        found.append(Hint(text, "Make one now", f"{url_for('dashboard.workers_state')}#job-snapshot"))
    return found
