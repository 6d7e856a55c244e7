"""Read and prepare transcripts in child processes, with bounded time and memory, and hand the parts to the importer.

A file that takes too long or too much memory ends only the process that reads it. It is set aside until it changes.
"""

import os
import pickle
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import IO

from config.limited_process import LimitedProcess
from config.operating_system import POSIX, limit_memory
from config.process import stop_with_parent
from pipeline.sessions.command_files import list_templates
from pipeline.sessions.prepare import PartPreparer, PreparedPart
from pipeline.sessions.readers.reader import TranscriptFile, load_reader
from pipeline.sessions.readers.zstd import MOST_BYTES

PROGRAM = "import reverie; reverie.use_own_packages(); from pipeline.sessions.reading import serve; serve()"
# Parts that wait to be stored. A part has a bounded size, and so has the memory of an import.
MOST_WAITING = 16
# Fewer bytes are read in this process: a child takes half a second to start.
FEW_BYTES = 4 * 1024 * 1024
MOST_CHILDREN = 4
# The next part of a file takes a fraction of a second; a large document takes some seconds.
PART_S = 60.0
MEMORY_BYTES = 3 << 30
_CHECK_S = 0.5
# Folders whose templates of commands are in memory: to look for them again for each message was half of an import.
MOST_FOLDERS = 8

TOO_LONG = f"it takes longer than {PART_S:.0f} s to read"
TOO_LARGE = "it takes too much memory to read"
ENDED = "the process that read it ended"


@dataclass(frozen=True, slots=True)
class ReadTask:
    """A file to read from a mark on."""

    file: TranscriptFile
    mark: str | None


@dataclass(frozen=True, slots=True)
class FileEnd:
    """The end of a file, and why it could not be read, if so; `is_harmful` is whether it ended its process."""

    problem: str | None = None
    is_harmful: bool = False


# A file's task, and its next part or its end. The parts of a file arrive in order; those of several files mixed.
ReadItem = tuple[ReadTask, PreparedPart | FileEnd]


def read_transcripts(tasks: Iterable[ReadTask], *, in_worker: bool = False) -> Iterator[ReadItem]:
    """Read files; yield prepared parts, and the end of each file.

    A worker has other tasks than this one, so a file must not stop it: it reads in a child process.
    """
    waiting = list(tasks)
    children = min(1 if in_worker else MOST_CHILDREN, os.cpu_count() or 1, len(waiting))
    if not in_worker and (children < 2 or sum(task.file.size for task in waiting) < FEW_BYTES):
        templates_of = lru_cache(MOST_FOLDERS)(list_templates)
        for task in waiting:
            yield from ((task, item) for item in read_file(task, templates_of))
        return
    pool = _Pool(waiting, children)
    try:
        yield from pool.list_items()
    finally:
        pool.stop()


def read_file(
    task: ReadTask, templates_of: Callable[[str], Sequence[str]] = list_templates
) -> Iterator[PreparedPart | FileEnd]:
    """Yield the prepared parts of a file, and its end."""
    preparer = PartPreparer(templates_of=templates_of)
    try:
        for part in load_reader(task.file.agent).read(task.file, task.mark):
            yield preparer.prepare(part)
    except MemoryError:
        yield FileEnd(TOO_LARGE, is_harmful=True)
        return
    except Exception as error:  # noqa: BLE001 - a file that cannot be read must not end the import
        # The text of other errors may quote the file.
        reason = error.strerror if isinstance(error, OSError) else None
        yield FileEnd(reason or type(error).__name__)
        return
    yield FileEnd()


class _Pool:
    """Threads that read files, each with a child process."""

    def __init__(self, tasks: list[ReadTask], children: int) -> None:
        self._unfinished = len(tasks)
        self._tasks: queue.SimpleQueue[ReadTask] = queue.SimpleQueue()
        self._items: queue.Queue[ReadItem] = queue.Queue(MOST_WAITING)
        self._stopped = threading.Event()
        for task in tasks:
            self._tasks.put(task)
        self._children = [LimitedProcess("-c", PROGRAM, str(MEMORY_BYTES)) for _ in range(children)]
        self._threads = [threading.Thread(target=self._read, args=(child,), daemon=True) for child in self._children]
        for thread in self._threads:
            thread.start()

    def list_items(self) -> Iterator[ReadItem]:
        """Yield what the children read."""
        while self._unfinished:
            task, item = self._items.get()
            self._unfinished -= isinstance(item, FileEnd)
            yield task, item

    def stop(self) -> None:
        """Stop the threads and their children."""
        self._stopped.set()
        for child in self._children:
            child.stop()
        for thread in self._threads:
            thread.join()

    def _read(self, process: LimitedProcess) -> None:
        while not self._stopped.is_set():
            try:
                task = self._tasks.get_nowait()
            except queue.Empty:
                return
            for item in read_in_process(process, task):
                self._put((task, item))

    def _put(self, item: ReadItem) -> None:
        while not self._stopped.is_set():
            with suppress(queue.Full):
                self._items.put(item, timeout=_CHECK_S)
                return


def read_in_process(process: LimitedProcess, task: ReadTask) -> Iterator[PreparedPart | FileEnd]:
    """Yield the prepared parts of a file, and its end; the process is started anew after a file that ended it."""
    try:
        process.send(pickle.dumps(task))
    except OSError as error:
        yield FileEnd(error.strerror or ENDED)
        return
    while (item := process.receive(_load, PART_S)) is not None:
        yield item
        if isinstance(item, FileEnd):
            if item.is_harmful:
                process.stop()
            return
    process.stop()
    yield FileEnd(TOO_LONG if process.is_late else ENDED, is_harmful=True)


def _load(output: IO[bytes]) -> PreparedPart | FileEnd | None:
    """Return the next item of a process; None if it ended, or was killed because it took too long."""
    try:
        item: PreparedPart | FileEnd = pickle.load(output)  # noqa: S301 - from our own process
    except (EOFError, pickle.UnpicklingError, OSError, ValueError):
        return None
    return item


def serve() -> None:
    """Read files for another process until there is none; the first argument is the most memory of this process."""
    # Of a compressed session, a reader writes a decompressed copy.
    limit_memory(int(sys.argv[1]), MOST_BYTES)
    if POSIX:
        # The importing process decides what an interruption means.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        stop_with_parent()
    # No library may write between the items.
    templates_of = lru_cache(MOST_FOLDERS)(list_templates)
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while True:
        try:
            task = pickle.load(sys.stdin.buffer)  # noqa: S301 - from our own process
        except EOFError:
            return
        for item in read_file(task, templates_of):
            pickle.dump(item, output)
            output.flush()
