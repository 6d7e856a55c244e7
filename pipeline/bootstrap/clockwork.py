"""The services of the scheduler: it reads what is due, and neither loads a model nor writes."""

from datetime import UTC, datetime, timedelta

from config.owner import is_alive
from config.settings import Settings
from pipeline.bootstrap.parts import mask
from pipeline.errors import ReverieError
from pipeline.jobs.appointments import APPOINTMENTS
from pipeline.jobs.calendar import Appointment
from pipeline.jobs.due import due_jobs
from pipeline.jobs.sweep import something_waits
from pipeline.store.database import Databases, WriterProfile
from pipeline.store.operations import Operations

# What is done where the memories are read: the front writes touches itself; a sweep is told by what waits.
ELSEWHERE = frozenset({"touches", "sweep"})


class Clockwork:
    """Tell what is due in each workspace."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.operations = Operations(settings.paths.operations, mask)
        self.databases = Databases(settings.paths, WriterProfile("NORMAL", 0, settings.busy_timeout_ms))
        self.appointments = [a for a in appointments(settings) if a.name not in ELSEWHERE]

    def due(self, workspace_id: str) -> tuple[list[str], bool]:
        """Return the jobs that are due in a workspace, and whether work waits there that nobody does."""
        try:
            with self.databases.get(workspace_id).read() as db:
                return due_jobs(db, self.appointments, datetime.now(UTC)), something_waits(db, is_alive)
        except ReverieError as error:
            self.operations.record_error("scheduler", str(error), workspace=workspace_id)
            return [], False

    def close(self) -> None:
        """Let go of every file."""
        self.databases.close()
        self.operations.close()


def appointments(settings: Settings) -> list[Appointment]:
    """Return the appointments in the rhythm that the settings give them."""
    rhythm = {
        "sweep": settings.sweep_interval_s,
        "segment": settings.segment_interval_s,
        "vectors": settings.vectors_interval_s,
    }
    return [
        Appointment(a.name, a.summary, timedelta(seconds=rhythm[a.name]), a.idle) if a.name in rhythm else a
        for a in APPOINTMENTS
    ]
