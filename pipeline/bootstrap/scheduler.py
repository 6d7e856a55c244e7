"""What the scheduler is made of: it reads what is due, and neither loads a model nor writes."""

from config.settings import Settings
from pipeline.bootstrap import mask
from pipeline.store.database import Databases, WriterProfile
from pipeline.store.operations import Operations


class SchedulerContainer:
    """The stores of every workspace, and where the scheduler says what went wrong."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.operations = Operations(settings.paths.operations, mask)
        self.databases = Databases(settings.paths, WriterProfile("NORMAL", 0, settings.busy_timeout_ms))

    def close(self) -> None:
        """Let go of every file."""
        self.databases.close()
        self.operations.close()
