"""The declaration of a feature: what the frames must know before they import one of its modules.

A frame is a part of Reverie that serves every feature: routes, commands, dashboard, MCP tools, jobs, recall, prompts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from apscheduler.triggers.base import BaseTrigger

# Sections of `reverie --help`.
EVERYDAY, TOPICS, ADMINISTRATION = "Everyday commands", "Topics (groups of commands)", "Administration"
NIGHTLY_HOUR = 3
# Times have a resolution of milliseconds. A run that started at its trigger's second is not due again by that trigger.
_RESOLUTION = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
# The job has work to do even if nothing was written.
ALWAYS = timedelta(0)
# The place after all others.
LAST = 1000.0

# A function of a `JobRun` and a `JobContext`, which returns a `Report`.
JobFunction = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a job runs: at a fixed interval, or, without `every`, nightly in local time."""

    every: timedelta | None = None

    def trigger(self) -> "BaseTrigger":
        """Return the trigger, which handles time zones and daylight saving."""
        from zoneinfo import ZoneInfoNotFoundError

        from apscheduler.triggers.cron import CronTrigger
        from apscheduler.triggers.interval import IntervalTrigger

        if self.every is not None:
            # A fixed start gives every process the same times.
            return IntervalTrigger(seconds=int(self.every.total_seconds()), start_date=_EPOCH, timezone=UTC)
        try:
            return CronTrigger(hour=NIGHTLY_HOUR)
        except ZoneInfoNotFoundError:
            # TZ may contain a rule instead of a zone name; each question creates a new trigger.
            return CronTrigger(hour=NIGHTLY_HOUR, timezone=datetime.now().astimezone().tzinfo)

    def next_after(self, moment: datetime) -> datetime:
        """Return the first trigger time after a time (UTC)."""
        following: datetime = self.trigger().get_next_fire_time(None, moment + _RESOLUTION)
        return following.astimezone(UTC)

    def last_before(self, moment: datetime) -> datetime:
        """Return the last trigger time up to a time (UTC)."""
        # A day on which clocks change has 25 hours at most.
        last = self.next_after(moment - 2 * (self.every or timedelta(hours=25)))
        while (following := self.next_after(last)) <= moment:
            last = following
        return last

    def __str__(self) -> str:
        if self.every is None:
            return f"nightly at {NIGHTLY_HOUR:02}:00"
        seconds = int(self.every.total_seconds())
        for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
            if seconds % length == 0:
                return f"every {seconds // length} {unit}"
        return f"every {seconds} s"


@dataclass(frozen=True, slots=True)
class ScheduledJob:
    """A job: name, one-line summary, schedule, and function.

    `idle` is the time after which the job has work to do although nothing was written since its last run; None for
    never. A job with `elsewhere` is done by the web server or at every tick of the scheduler, and is not sent to the
    workers. `place` orders the jobs of a complete run.
    """

    name: str
    summary: str
    schedule: Schedule
    function: JobFunction
    idle: timedelta | None = None
    elsewhere: bool = False
    place: float = LAST


NIGHTLY = Schedule()


def load_job(
    module: str,
    name: str,
    choose: Callable[[Any], tuple[Any, ...]] = lambda _context: (),
    *,
    writes: bool = False,
) -> JobFunction:
    """Return a job that is loaded when it runs; `choose` returns its arguments after the run from the `JobContext`.

    A job that `writes` memories does nothing in a workspace that is incognito or read-only.
    """
    return partial(_run_job, module, name, choose, writes)


def _run_job(
    module: str, name: str, choose: Callable[[Any], tuple[Any, ...]], writes: bool, run: Any, context: Any
) -> Any:
    from pipeline.kernel.records.access import decide_access

    if writes and decide_access(context.paths.root.name, context.settings).is_silent:
        return run.report(more=False)
    return getattr(import_module(module), name)(run, *choose(context))


# The names that frames look up in modules of features, with the value that they expect. `seq` is the row number of a
# memory.
Extension = Literal[
    # (db, viewer, limit) -> memories: work that is not finished, for prompts and the job `reflect`.
    "list_unfinished",
    # (db, viewer, limit) -> threads under way, and (db, viewer, seqs, limit) -> those of some memories, for prompts.
    "list_threads",
    "list_threads_of",
    # (db, viewer, seq) -> the thread of a memory, if it has one, for its page.
    "list_threads_with",
    # The models of unfinished work and of threads in the answer of `POST /v1/prepare`.
    "UnfinishedAnswer",
    "ThreadAnswer",
    # (db, limit) -> (reason, texts): questions that are likely to come next, for the job `predict`.
    "list_likely_questions",
    # (db) -> (memories) -> notes by memory id: statements that are no longer true, for every result of recall.
    "read_broken",
    # The models of the details of memories, by kind.
    "DETAILS",
    # The class of the adviser before acts: `prepare(workspace)`, and `advise(workspace, session, tool, arguments,
    # rules_only=…)` -> warnings, the most important first.
    "ActAdvisor",
    # An SQL condition on `memory m`: these memories are not archived because of their age.
    "IS_KEPT",
    # The declarations of tables in the file of a workspace. Purges, checks, exchanges and moves use them.
    "TABLES",
    # (db, seq) -> texts that were derived from a memory, read before they are erased.
    "list_derived_texts",
]


# What prompts ask for.
PROMPT_EXTENSIONS: tuple[Extension, ...] = (
    "read_broken",
    "list_unfinished",
    "list_threads",
    "list_threads_of",
    "ActAdvisor",
)


class Command(NamedTuple):
    """A command: its name, the module that defines it, its description, section and place in `reverie --help`.

    The name of a command in a group of another feature has two words. Commands for programs have no section.
    """

    name: str
    module: str
    help: str = ""
    section: str = ""
    place: float = LAST


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature: its entry points by frame, each a module that the frame imports when it needs it.

    `endpoints` define values of `Api`, `pages` of `Section`. `tools` have `TOOLS`, and may have `BRIEF`, the parts that
    they add to the overview. `stages` are modules with `create_stage` by the name of the stage, `extensions` what a
    module defines for frames. `needs` names the features that its modules import.
    """

    name: str
    endpoints: tuple[str, ...] = ()
    commands: tuple[Command, ...] = ()
    pages: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    jobs: tuple[ScheduledJob, ...] = ()
    stages: Mapping[str, str] = field(default_factory=dict)
    extensions: Mapping[str, tuple[Extension, ...]] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
