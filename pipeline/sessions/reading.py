"""Read and prepare transcripts in child processes, with bounded memory, and hand the parts to the importing process."""

import multiprocessing
import os
import queue
import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import TYPE_CHECKING

from config.operating_system import POSIX
from config.process import stop_with_parent
from pipeline.sessions.prepare import PartPreparer, PreparedPart
from pipeline.transcripts.reader import TranscriptFile
from pipeline.transcripts.readers import load_reader

if TYPE_CHECKING:
    from multiprocessing import Queue

# Parts that wait to be stored. A part has a bounded size, and so has the memory of an import.
MOST_WAITING = 16
# Fewer bytes are read in this process: two children take half a second to start.
FEW_BYTES = 4 * 1024 * 1024
MOST_CHILDREN = 4
_CHECK_S = 1.0


@dataclass(frozen=True, slots=True)
class ReadTask:
    """A file to read from a mark on."""

    file: TranscriptFile
    mark: str | None


@dataclass(frozen=True, slots=True)
class FileEnd:
    """The end of a file, and why it could not be read, if so."""

    problem: str | None = None


# A file's task, and its next part or its end. The parts of a file arrive in order; those of several files mixed.
ReadItem = tuple[ReadTask, PreparedPart | FileEnd]


def read_transcripts(tasks: Iterable[ReadTask], *, may_fork: bool = True) -> Iterator[ReadItem]:
    """Read files, large amounts in several processes; yield prepared parts, and the end of each file.

    A worker may not start children: `may_fork` is false there.
    """
    waiting = list(tasks)
    children = min(MOST_CHILDREN, os.cpu_count() or 1, len(waiting))
    if not may_fork or children < 2 or sum(task.file.size for task in waiting) < FEW_BYTES:
        for task in waiting:
            yield from ((task, item) for item in _read_file(task))
        return
    pool = _Pool(children)
    try:
        yield from pool.read(waiting)
    finally:
        pool.stop()


def _read_file(task: ReadTask) -> Iterator[PreparedPart | FileEnd]:
    preparer = PartPreparer()
    try:
        for part in load_reader(task.file.agent).read(task.file, task.mark):
            yield preparer.prepare(part)
    except Exception as error:  # noqa: BLE001 - a file that cannot be read must not end the import
        # The text of other errors may quote the file.
        reason = error.strerror if isinstance(error, OSError) else None
        yield FileEnd(reason or type(error).__name__)
        return
    yield FileEnd()


class _Pool:
    """Child processes that read files."""

    def __init__(self, children: int) -> None:
        context: SpawnContext = multiprocessing.get_context("spawn")
        self._tasks: Queue[tuple[int, ReadTask] | None] = context.Queue()
        self._items: Queue[tuple[int, PreparedPart | FileEnd]] = context.Queue(MOST_WAITING)
        self._processes: list[SpawnProcess] = [
            context.Process(target=_run_child, args=(self._tasks, self._items), daemon=True) for _ in range(children)
        ]
        for process in self._processes:
            process.start()

    def read(self, tasks: list[ReadTask]) -> Iterator[ReadItem]:
        """Yield what the children read; a file whose child died ends with a problem."""
        for numbered in enumerate(tasks):
            self._tasks.put(numbered)
        for _ in self._processes:
            self._tasks.put(None)
        unfinished = dict(enumerate(tasks))
        while unfinished:
            try:
                number, item = self._items.get(timeout=_CHECK_S)
            except queue.Empty:
                if any(process.is_alive() for process in self._processes):
                    continue
                for task in unfinished.values():
                    yield task, FileEnd("the process that read it ended")
                return
            task = unfinished[number] if isinstance(item, PreparedPart) else unfinished.pop(number)
            yield task, item

    def stop(self) -> None:
        """Stop the children."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join()
        for each in (self._tasks, self._items):
            each.close()
            each.cancel_join_thread()


def _run_child(tasks: "Queue[tuple[int, ReadTask] | None]", items: "Queue[tuple[int, PreparedPart | FileEnd]]") -> None:
    """Read files until there is none."""
    if POSIX:
        # The importing process decides what an interruption means.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        stop_with_parent()
    with suppress(KeyboardInterrupt):
        while (numbered := tasks.get()) is not None:
            number, task = numbered
            for item in _read_file(task):
                items.put((number, item))
