"""The consumer of a data directory: worker processes that load models for tasks and end when idle.

huey's parent forks processes and replaces those that exit. Each process runs tasks in a few threads that share one set
of models; ONNX Runtime does not block other threads. A process that was busy and then idle for a while exits; its
replacement has no models loaded.
"""

import ctypes
import signal
import threading
import time
from types import FrameType
from typing import Any

from huey.consumer import Consumer, Worker, WorkerRecycle

from config.process import limit_heaps

# Threads per process: one encodes while another finds names.
THREADS = 2
# Seconds without a task until a process exits. To load libraries and models again takes some seconds of CPU time, so
# they stay while an agent's turns follow each other (decision 0113).
IDLE_S = 60.0
# Seconds between two checks of the parent whether to stop.
STOP_LOOK_S = 0.4
# Seconds for an interrupted thread to release its claims; the parent waits one second for the process.
INTERRUPTED_S = 0.8


class WorkerThreads(Worker):  # type: ignore[misc]  # huey ships no types
    """The threads of one forked process; the main thread is one of them."""

    def __init__(self, interrupt: signal.Signals, **options: Any) -> None:
        super().__init__(**options)
        self._interrupt = interrupt
        self._others = [Worker(**options) for _ in range(THREADS - 1)]
        purges = getattr(options["huey"], "purges", None)
        if purges is not None:
            # Purges continue while all other threads wait for an encoder to be compiled.
            self._others.append(Worker(**{**options, "huey": purges}))
        self._threads: list[threading.Thread] = []
        self._leaves = self._is_interrupted = False
        self._done = 0
        self._busy_at = 0.0

    def initialize(self) -> None:
        """Start the other threads."""
        limit_heaps(THREADS)
        super().initialize()
        self._handle = signal.signal(self._interrupt, self._interrupt_all)
        for number, worker in enumerate(self._others, 2):
            thread = threading.Thread(target=self._work, args=(worker,), name=f"thread-{number}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def loop(self, now: Any = None) -> None:
        """Run one task or wait for one; exit the process when all threads have been idle for long."""
        if self._leaves:
            raise WorkerRecycle
        super().loop(now)
        done = self.task_count + sum(worker.task_count for worker in self._others)
        if done != self._done or self.huey._tasks_in_flight:  # noqa: SLF001 - as huey's own workers do
            self._done, self._busy_at = done, time.monotonic()
        elif done and time.monotonic() - self._busy_at > IDLE_S:
            raise WorkerRecycle

    def shutdown(self) -> None:
        """Wait until the other threads finish their tasks or, if interrupted, release their claims."""
        self._leaves = True
        for thread in self._threads:
            # Wait without a limit, unless this thread is interrupted too.
            while thread.is_alive() and not self._is_interrupted:
                thread.join(self.max_delay)
        end = time.monotonic() + INTERRUPTED_S
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        super().shutdown()

    def _work(self, worker: Worker) -> None:
        try:
            while not (self._leaves or self.stop_flag.is_set()):
                worker.loop()
        except KeyboardInterrupt:
            self._logger.info("%s was interrupted", threading.current_thread().name)

    def _interrupt_all(self, number: int, frame: FrameType | None) -> None:
        """Interrupt every thread, not only the one that signals reach."""
        self._leaves = self._is_interrupted = True
        for thread in self._threads:
            # The exception is raised as soon as the thread runs Python code again.
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident or 0), ctypes.py_object(KeyboardInterrupt)
            )
        if callable(self._handle):
            self._handle(number, frame)


class ForkingConsumer(Consumer):  # type: ignore[misc]  # ditto
    """huey's consumer, with a `WorkerThreads` in each process; with threads, the original behavior."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # huey checks ten times a second, which is a quarter of the CPU time of an idle stack.
        self._stop_flag_timeout = STOP_LOOK_S
        if not self.environment.forks and getattr(self.huey, "purges", None) is not None:
            worker = Worker(**{**self._worker_options(), "huey": self.huey.purges})
            self.worker_threads.append((worker, self._create_process(worker, "Purges")))

    def _create_worker(self) -> Worker:
        if not self.environment.forks:
            return super()._create_worker()
        return WorkerThreads(self._interrupt_sig, **self._worker_options())

    def _worker_options(self) -> dict[str, Any]:
        return {
            "huey": self.huey,
            "stop_flag": self.stop_flag,
            "default_delay": self.default_delay,
            "max_delay": self.max_delay,
            "backoff": self.backoff,
            "max_tasks": self.max_tasks,
        }

    def check_worker_health(self) -> bool:
        """Replace processes that exited; log nothing for an idle process."""
        for index, (_, process) in enumerate(self.worker_threads):
            if self.environment.forks and process.exitcode == 0:
                worker = self._create_worker()
                fresh = self._create_process(worker, f"Worker-{index + 1}")
                fresh.start()
                self.worker_threads[index] = worker, fresh
        return bool(super().check_worker_health())
