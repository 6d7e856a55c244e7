"""Wake the workers after commits. The queue is a separate module, which a web server loads at the first message."""

import threading
from collections.abc import Callable, Set as AbstractSet
from dataclasses import dataclass

from pipeline.enums import Stage

# Writes come in bursts: one message serves all writes within this time.
COALESCE_S = 0.25


@dataclass(frozen=True, slots=True, order=True)
class WakeUp:
    """A wake-up message: a workspace has work for a stage or, without a stage, other work."""

    workspace_id: str
    stage: str = ""


class Notifier:
    """Wake the workers from a thread, once for all commits within `COALESCE_S`; a failure never fails a commit."""

    def __init__(self, send: Callable[[WakeUp], None], on_error: Callable[[str], None]) -> None:
        self._send = send
        self._on_error = on_error
        self._waiting: set[WakeUp] = set()
        self._changed = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="notifier", daemon=True)
        self._thread.start()

    def notify(self, workspace_id: str, wake_ups: AbstractSet[Stage | None]) -> None:
        """Record the stages that have new work, None for other work, and return at once."""
        with self._changed:
            self._waiting.update(WakeUp(workspace_id, stage or "") for stage in wake_ups)
            self._changed.notify()

    def close(self) -> None:
        """Send the pending messages and stop."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        pause = threading.Event()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._stopped)
                if not self._waiting:
                    return
                messages, self._waiting = self._waiting, set()
            for message in sorted(messages):
                self._try_to_send(message)
            pause.wait(COALESCE_S)

    def _try_to_send(self, message: WakeUp) -> None:
        try:
            self._send(message)
        except Exception as error:  # noqa: BLE001 - any broker's error; the scheduler finds the work without the message
            self._on_error(f"the wake-up message of {message.workspace_id} failed: {type(error).__name__}: {error}")
