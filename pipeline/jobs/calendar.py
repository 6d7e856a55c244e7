"""When each job is due: at intervals, or once a night. Missed runs are made up for once."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

NIGHT_BEGINS = time(3, 0)


@dataclass(frozen=True, slots=True)
class Appointment:
    """A job's name, its rhythm, and what it does.

    Without `every` it runs once a night, in local time. `idle` jobs have something to do even if nothing was written
    since their last run.
    """

    name: str
    summary: str
    every: timedelta | None = None
    idle: bool = False

    @property
    def schedule(self) -> str:
        """Describe the rhythm."""
        if self.every is None:
            return f"nightly at {NIGHT_BEGINS:%H:%M}"
        seconds = int(self.every.total_seconds())
        for unit, length in (("h", 3600), ("min", 60)):
            if seconds % length == 0:
                return f"every {seconds // length} {unit}"
        return f"every {seconds} s"


def next_run(appointment: Appointment, last: datetime | None, now: datetime) -> datetime:
    """Return when a job is due next (UTC): now or earlier when a run was missed; one that never ran waits its turn."""
    if appointment.every is not None:
        return now if last is None else last + appointment.every
    return _night_after(now if last is None else last)


def is_due(appointment: Appointment, last: datetime | None, now: datetime) -> bool:
    """Tell whether a job is due."""
    return next_run(appointment, last, now) <= now


def night_of(day: date) -> datetime:
    """Return when the night of a local day begins (UTC)."""
    # Where clocks change on a day, its hours do not all stand equally far from UTC.
    return datetime.combine(day, NIGHT_BEGINS).astimezone(UTC)


def _night_after(moment: datetime) -> datetime:
    today = moment.astimezone().date()
    begins = night_of(today)
    return begins if begins > moment else night_of(today + timedelta(days=1))
