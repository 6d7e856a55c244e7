"""The container of the scheduler, which reads due work and neither loads models nor writes."""

from config.import_stubs import SQLITE_UTILS_EXTRAS, hide_packages
from config.settings import Settings

with hide_packages(SQLITE_UTILS_EXTRAS):
    from pipeline.kernel.store.stores import open_stores

from pipeline.bootstrap import mask
from pipeline.features.maintenance.schedule_scan import DueFinder, list_clocked_jobs
from pipeline.features.sync.clock import SyncClock
from pipeline.kernel.leadership import Leadership
from pipeline.kernel.store.database import WriterProfile
from pipeline.sessions.watch import SessionWatch, find_places


class SchedulerContainer:
    """The stores of every workspace, and the log for errors of the scheduler."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.stores = open_stores(settings, WriterProfile("NORMAL", 0), mask)
        self.databases, self.operations = self.stores.databases, self.stores.operations
        self.jobs = list_clocked_jobs(settings)
        self.sync_clock = SyncClock(self.stores.peers, self.databases)
        self.leadership = Leadership(self.stores.values, self.operations)
        self.session_watch = SessionWatch(settings, self.stores.transcripts, find_places())
        self.due = DueFinder(settings.paths, self.databases, self.operations, self.jobs)

    def close(self) -> None:
        """Save the due times for the next scheduler, and close all files."""
        self.leadership.resign()
        self.due.keep()
        self.stores.close()
