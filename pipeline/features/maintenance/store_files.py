"""The store files of a data directory whose processes have stopped."""

from collections.abc import Iterator

from config.settings import Settings
from pipeline.kernel.store.checkpoints import complete_files


def complete_store_files(settings: Settings) -> Iterator[str]:
    """Move every write-ahead log into its store's main file, so that a copy of this file is complete.

    Yield a message for each file that is not complete afterwards. Call it after the processes have stopped.
    """
    for file, problem in complete_files(settings.paths):
        yield f"{file} is complete only together with {file.name}-wal: {problem}"
