"""What a job of the night works with, and what it reports.

A job is a function of a Night: it does a bounded piece of work, stops when its time is up or somebody waits in the
foreground, and says whether more is left. Run again after any interruption it comes to the same end: it either changes
rows in transactions that are complete in themselves, or derives everything anew.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from pipeline.store.database import Database
from pipeline.times import utc_text


@dataclass(frozen=True, slots=True)
class Night:
    """One run of a job on one workspace.

    `now` is the moment that the job takes for the present (UTC). `pausing` tells whether to stop at the next good
    place: time is up, foreground work waits, or the process is asked to end. `progress` takes how many pieces are done
    and how many there are.
    """

    database: Database
    now: datetime
    pausing: Callable[[], bool] = field(default=lambda: False)
    progress: Callable[[int, int], None] = field(default=lambda _done, _total: None)

    @property
    def at(self) -> str:
        """Return the present moment as text."""
        return utc_text(self.now)


@dataclass(frozen=True, slots=True)
class Report:
    """What a run did, by countable things, and whether it stopped before everything was done."""

    counts: Mapping[str, int] = field(default_factory=dict)
    more: bool = False


Job = Callable[[Night], Report]
