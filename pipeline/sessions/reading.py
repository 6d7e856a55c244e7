"""Read and prepare transcripts in child processes, with bounded time and memory, and hand the parts to the importer.

A file that takes too long or too much memory ends only the process that reads it. It is set aside until it changes.
"""

import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from pipeline.sessions.prepare import PartPreparer, PreparedPart
from pipeline.transcripts.reader import TranscriptFile
from pipeline.transcripts.readers import load_reader

PROGRAM = "pipeline.sessions.reading_process"
# Parts that wait to be stored. A part has a bounded size, and so has the memory of an import.
MOST_WAITING = 16
# Fewer bytes are read in this process: a child takes half a second to start.
FEW_BYTES = 4 * 1024 * 1024
MOST_CHILDREN = 4
# The next part of a file takes a fraction of a second; a large document takes some seconds.
PART_S = 60.0
MEMORY_BYTES = 3 << 30
_CHECK_S = 0.5

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
        for task in waiting:
            yield from ((task, item) for item in read_file(task))
        return
    pool = _Pool(waiting, children)
    try:
        yield from pool.list_items()
    finally:
        pool.stop()


def read_file(task: ReadTask) -> Iterator[PreparedPart | FileEnd]:
    """Yield the prepared parts of a file, and its end."""
    preparer = PartPreparer()
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
        self._children = [_Child() for _ in range(children)]
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

    def _read(self, child: "_Child") -> None:
        while not self._stopped.is_set():
            try:
                task = self._tasks.get_nowait()
            except queue.Empty:
                return
            for item in child.read(task):
                self._put((task, item))

    def _put(self, item: ReadItem) -> None:
        while not self._stopped.is_set():
            with suppress(queue.Full):
                self._items.put(item, timeout=_CHECK_S)
                return


class _Child:
    """A process that reads one file after another. It is started anew after a file that ended it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def read(self, task: ReadTask) -> Iterator[PreparedPart | FileEnd]:
        """Yield the prepared parts of a file, and its end."""
        try:
            process = self._process = self._process or _start_child()
        except OSError as error:
            yield FileEnd(error.strerror or ENDED)
            return
        assert process.stdin is not None
        late = threading.Event()
        with suppress(OSError):
            pickle.dump(task, process.stdin)
            process.stdin.flush()
        while (item := _receive(process, late)) is not None:
            yield item
            if isinstance(item, FileEnd):
                if item.is_harmful:
                    self.stop()
                return
        self.stop()
        yield FileEnd(TOO_LONG if late.is_set() else ENDED, is_harmful=True)

    def stop(self) -> None:
        """Stop the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in filter(None, (process.stdin, process.stdout)):
                with suppress(OSError):
                    pipe.close()


def _start_child() -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-I", "-m", PROGRAM, str(MEMORY_BYTES)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def _receive(process: "subprocess.Popen[bytes]", late: threading.Event) -> PreparedPart | FileEnd | None:
    """Return the next item of a process; None if it ended, or was killed because it took too long."""
    assert process.stdout is not None
    watch = threading.Timer(PART_S, _kill, (process, late))
    watch.start()
    try:
        item: PreparedPart | FileEnd = pickle.load(process.stdout)  # noqa: S301 - from our own process
    except (EOFError, pickle.UnpicklingError, OSError, ValueError):
        return None
    finally:
        watch.cancel()
    return item


def _kill(process: "subprocess.Popen[bytes]", late: threading.Event) -> None:
    late.set()
    process.kill()
