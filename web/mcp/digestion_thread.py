"""Digest in a thread of the standalone MCP server what its tools wrote, at low priority.

The work is claimed under a lease, as by a worker: a stack on the same data directory may digest at the same time. When
the thread stops, the remaining work stays queued.
"""

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from config.operating_system import lower_thread_priority
from config.settings import Settings
from pipeline.enums import Stage
from pipeline.errors import EncoderUnavailable, NotFound
from workers.notifier import WakeUp

if TYPE_CHECKING:
    from pipeline.bootstrap.worker import WorkerContainer
    from pipeline.store.database import WakeUps

OpenWorker = Callable[[Callable[[str, "WakeUps"], None]], "WorkerContainer"]

NICENESS = 10
# Few items, so that the thread soon stops with its host.
BATCH = 8
# Seconds to finish the current batch after the host has closed standard input.
LAST_BATCH_S = 5.0
# Seconds without work until the models are freed.
RELEASE_S = 20.0
SWEEP = ""

log = logging.getLogger(__name__)


def open_worker(settings: Settings, on_commit: Callable[[str, "WakeUps"], None]) -> "WorkerContainer":
    """Return the services of a worker that starts no process: it compiles no model."""
    # Imported at the first write: a session that only reads does not need it.
    from pipeline.bootstrap.worker import WorkerContainer

    worker = WorkerContainer(settings, on_commit, may_compile=False)
    worker.encoders.background.waits = True
    return worker


class DigestionThread:
    """Digests the work that commits queue, until it is closed."""

    def __init__(self, open_worker: OpenWorker) -> None:
        self._open_worker = open_worker
        self._worker: WorkerContainer | None = None
        self._has_models = False
        # The time (time.monotonic seconds) from which each message may be processed.
        self._due: dict[WakeUp, float] = {}
        self._swept: set[str] = set()
        self._changed = threading.Condition()
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name="digestion", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def notify(self, workspace_id: str, wake_ups: "WakeUps") -> None:
        """Queue the stages that have new work, None for other work, and return at once."""
        with self._changed:
            for stage in wake_ups:
                self._due[WakeUp(workspace_id, stage or SWEEP)] = time.monotonic()
            self._changed.notify()

    def close(self) -> None:
        """Finish the current batch and stop; the remaining work stays queued."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(LAST_BATCH_S)

    def _run(self) -> None:
        lower_thread_priority(NICENESS)
        while (messages := self._take()) is not None:
            for message in messages:
                if not self._is_stopped:
                    self._process(message)
            self._has_models = bool(messages)
            if not messages and self._worker is not None:
                self._worker.release_models()
        if self._worker is not None:
            self._worker.close()

    def _take(self) -> list[WakeUp] | None:
        """Wait for messages that are due and return them; none when the models should be freed, None to stop."""
        release_at = time.monotonic() + RELEASE_S if self._has_models else math.inf
        with self._changed:
            while not self._is_stopped:
                now = time.monotonic()
                due = sorted(message for message, at in self._due.items() if at <= now)
                if due or now >= release_at:
                    self._due = {message: at for message, at in self._due.items() if message not in due}
                    return due
                ends_at = min([release_at, *self._due.values()])
                self._changed.wait(None if ends_at == math.inf else ends_at - now)
        return None

    def _process(self, message: WakeUp) -> None:
        if self._worker is None:
            self._worker = self._open_worker(self.notify)
        try:
            if message.workspace_id not in self._swept:
                self._swept.add(message.workspace_id)
                _sweep(self._worker, message.workspace_id)
            if message.stage == SWEEP:
                _sweep(self._worker, message.workspace_id)
            else:
                self._digest(self._worker, message)
        except NotFound:
            log.debug("workspace %s was deleted", message.workspace_id)
        except EncoderUnavailable as error:
            log.info("the stage %s stays queued: %s", message.stage, error)
        except Exception as error:  # noqa: BLE001 - the thread must survive; a stack tries again
            component = f"digest.{message.stage}" if message.stage else "sweep"
            self._worker.operations.record_error(
                component, f"{type(error).__name__}: {error}", workspace=message.workspace_id
            )

    def _digest(self, worker: "WorkerContainer", message: WakeUp) -> None:
        """Process one stage for a turn, and queue what remains of it."""
        from pipeline.services import maintenance

        workspace_id, stage = message.workspace_id, Stage(message.stage)
        context, again = worker.context(workspace_id), partial(self.notify, workspace_id, {stage})
        policy = replace(worker.policy, batch=BATCH)
        turn = maintenance.digest_stage(context, stage, worker.stages(workspace_id)[stage], worker.owner, policy, again)
        if turn.more:
            again()
        elif turn.retry_in_s is not None:
            with self._changed:
                self._due.setdefault(message, time.monotonic() + turn.retry_in_s)
        # Other jobs wait for the next stack: recall needs only this one soon.
        if "segment" in turn.jobs:
            maintenance.run_job(context, "segment", worker.owner, lambda: self._is_stopped)


def _sweep(worker: "WorkerContainer", workspace_id: str) -> None:
    """Release the claims of ended processes, queue claimable work, and finish interrupted writes."""
    from pipeline.services import maintenance
    from pipeline.services.personal_store import settle_stores

    maintenance.reap_processes(worker.context(workspace_id), worker.operations)
    settle_stores(worker.workspace(workspace_id))
