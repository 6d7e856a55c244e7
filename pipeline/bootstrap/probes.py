"""The scratch data directory in which `reverie doctor --probe` runs the hooks of a host (decision 0071).

The events of a probe run through the routes and use cases of every event, but in another container: no store, log or
file of the user's is opened for them, so that nothing has to be removed from those.
"""

import secrets
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from config.settings import NO_SECRET, Settings
from pipeline.errors import Conflict, NotFound
from pipeline.recall.search import warm

if TYPE_CHECKING:
    from pipeline.bootstrap.web import WebContainer

# A probe that its command did not end is removed after this time.
LONGEST_PROBE_S = 120.0
ID_BYTES = 8
# A hook gives up long before this.
LONGEST_EVENT_S = 10.0
# Longer than an agent would wait: on a slow machine, hooks that work must not look broken.
HOOK_BUDGET_MS = 2000


@dataclass(frozen=True, slots=True)
class _Probe:
    id: str
    container: "WebContainer"
    timer: threading.Timer


class ProbeContainers:
    """Create and remove the scratch container of a probe, one at a time."""

    def __init__(self, settings: Settings, create: Callable[[Settings], "WebContainer"]) -> None:
        self._settings = settings
        self._create = create
        self._lock = threading.Condition()
        self._users = 0
        self._probe: _Probe | None = None

    def begin(self) -> str:
        """Create a scratch container and return the id of its probe; raise Conflict while another probe runs."""
        with self._lock:
            if self._probe is not None:
                raise Conflict("Another probe runs. Run `reverie doctor --probe` again when it has ended.")
            # Of a server that was killed during a probe.
            self._remove_files()
            probe_id = secrets.token_hex(ID_BYTES)
            container = self._open(probe_id)
            timer = threading.Timer(LONGEST_PROBE_S, self.end, (probe_id,))
            timer.daemon = True
            timer.start()
            self._probe = _Probe(probe_id, container, timer)
            return probe_id

    @contextmanager
    def entered(self, probe_id: str) -> Iterator["WebContainer"]:
        """Use the container of a probe; raise NotFound if the probe has ended. Its end waits for all users."""
        with self._lock:
            container = self._find(probe_id)
            self._users += 1
        try:
            yield container
        finally:
            with self._lock:
                self._users -= 1
                self._lock.notify_all()

    def wait_for_users(self, probe_id: str) -> "WebContainer":
        """Return the container of a probe once its events are handled; raise NotFound if the probe has ended."""
        with self._lock:
            self._lock.wait_for(lambda: not self._users, LONGEST_EVENT_S)
            container = self._find(probe_id)
        # What events leave to be written is written in order.
        container.feedback.submit(lambda: None).result(LONGEST_EVENT_S)
        return container

    def end(self, probe_id: str) -> None:
        """Remove the container and the files of a probe; do nothing if it has ended."""
        with self._lock:
            self._lock.wait_for(lambda: not self._users, LONGEST_EVENT_S)
            if self._probe is not None and self._probe.id == probe_id:
                self._remove()

    def close(self) -> None:
        """Remove the probe that runs."""
        with self._lock:
            if self._probe is not None:
                self._remove()

    def _find(self, probe_id: str) -> "WebContainer":
        if self._probe is None or self._probe.id != probe_id:
            raise NotFound("There is no such probe; it has ended.")
        return self._probe.container

    def _open(self, probe_id: str) -> "WebContainer":
        try:
            container = self._create(self._scratch_settings(probe_id))
            # A hook waits less than a second; this is the longest part of the first event.
            container.load_agents()
            workspace = container.workspace(container.settings.workspace)
            workspace.create()
            warm(container.contexts.get(workspace))
        except BaseException:
            self._remove_files()
            raise
        return container

    def _remove(self) -> None:
        probe, self._probe = self._probe, None
        if probe is not None:
            probe.timer.cancel()
            probe.container.close()
            self._remove_files()

    def _remove_files(self) -> None:
        shutil.rmtree(self._settings.paths.probes, ignore_errors=True)

    def _scratch_settings(self, probe_id: str) -> Settings:
        return replace(
            self._settings,
            home=self._settings.paths.probes / probe_id,
            # Files, also where the store is a server: a probe there would need tables of its own.
            store=NO_SECRET,
            vectors="",
            reranker="",
            enabled=True,
            hook_recall=True,
            incognito=False,
            read_only=False,
            personal=False,
            hook_budget_ms=HOOK_BUDGET_MS,
        )
