"""What the scheduler is made of: it reads what is due, and neither loads a model nor writes."""

from config.settings import Settings
from pipeline.bootstrap import mask
from pipeline.services.leadership import Leadership
from pipeline.services.schedule_scan import DueFinder, list_clocked_jobs
from pipeline.services.sync_clock import SyncClock
from pipeline.store.database import WriterProfile
from pipeline.store.stores import open_stores


class SchedulerContainer:
    """The stores of every workspace, and where the scheduler says what went wrong."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.stores = open_stores(settings, WriterProfile("NORMAL", 0, settings.busy_timeout_ms), mask)
        self.databases, self.operations = self.stores.databases, self.stores.operations
        self.jobs = list_clocked_jobs(settings)
        self.sync_clock = SyncClock(self.stores.peers, self.databases)
        self.leadership = Leadership(self.stores.values, self.operations)
        self.due = DueFinder(settings.paths, self.databases, self.operations, self.jobs)

    def close(self) -> None:
        """Let go of every file, and keep for the next scheduler what is known."""
        self.leadership.resign()
        self.due.keep()
        self.stores.close()
