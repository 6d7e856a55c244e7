"""Wake the workers after commits. The queue is a separate module, which a web server loads at the first message."""

import threading
import time
from collections.abc import Callable, Set as AbstractSet
from dataclasses import dataclass

from pipeline.kernel.enums import Stage

# Writes come in bursts: one message serves all writes within this time.
COALESCE_S = 0.25


@dataclass(frozen=True, slots=True, order=True)
class WakeUp:
    """A wake-up message: a workspace has work for a stage or, without a stage, other work."""

    workspace_id: str
    stage: str = ""


class WakeUps:
    """The wake-ups of commits that were not sent yet, each once. Several threads may use one object."""

    def __init__(self) -> None:
        self._waiting: set[WakeUp] = set()
        self._lock = threading.Lock()

    def collect(self, workspace_id: str, stages: AbstractSet[Stage | None]) -> None:
        """Keep the stages that have new work, None for other work, until the next `send`."""
        with self._lock:
            self._waiting.update(WakeUp(workspace_id, stage or "") for stage in stages)

    def send(self, send: Callable[[WakeUp], None]) -> None:
        """Send everything that waits now; after an error, what was not sent waits for the next time."""
        with self._lock:
            messages, self._waiting = sorted(self._waiting, reverse=True), set()
        try:
            while messages:
                send(messages.pop())
        finally:
            with self._lock:
                self._waiting.update(messages)


class Notifier:
    """Wake the workers from a thread, once for all commits within `COALESCE_S`; a failure never fails a commit."""

    def __init__(self, send: Callable[[WakeUp], None], on_error: Callable[[str], None]) -> None:
        self._send = send
        self._on_error = on_error
        self._wake_ups = WakeUps()
        self._changed = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="notifier", daemon=True)
        self._thread.start()

    def notify(self, workspace_id: str, wake_ups: AbstractSet[Stage | None]) -> None:
        """Record the stages that have new work, None for other work, and return at once."""
        self._wake_ups.collect(workspace_id, wake_ups)
        self._changed.set()

    def close(self) -> None:
        """Send the pending messages and stop."""
        self._stopped = True
        self._changed.set()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        is_last = False
        while not is_last:
            self._changed.wait()
            self._changed.clear()
            is_last = self._stopped
            self._wake_ups.send(self._try_to_send)
            if not is_last:
                time.sleep(COALESCE_S)

    def _try_to_send(self, message: WakeUp) -> None:
        try:
            self._send(message)
        except Exception as error:  # noqa: BLE001 - any broker's error; the scheduler finds the work without the message
            self._on_error(f"the wake-up message of {message.workspace_id} failed: {type(error).__name__}: {error}")
