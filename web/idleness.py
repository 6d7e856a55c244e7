"""When a stack may stop by itself: nobody asked it for anything for a while, nothing waits, and no job runs."""

import logging
import threading
from collections.abc import Callable
from typing import Any

from config.settings import Settings
from pipeline.errors import ReverieError
from web.client import Client

# What waits or runs is looked at again after this long, and so is a server that does not answer.
AGAIN_S = 15.0
TIMEOUT_S = 5.0

log = logging.getLogger(__name__)


def watch(settings: Settings, stop: Callable[[str], None], again_s: float = AGAIN_S) -> Callable[[], None]:
    """Call `stop` once with the reason when the stack has been idle for `idle_exit_min`; return what ends the watch."""
    limit_s = settings.idle_exit_min * 60
    ended = threading.Event()

    def look() -> None:
        wait_s: float | None = limit_s
        while wait_s is not None and not ended.wait(wait_s):
            # Anew each time: the server makes the token when it first starts.
            with Client.from_settings(settings, timeout_s=TIMEOUT_S) as client:
                wait_s = waits(client, limit_s, again_s)
        if wait_s is None:
            stop(f"{settings.idle_exit_min:g} min without a request")

    if limit_s:
        threading.Thread(target=look, name="idleness", daemon=True).start()
    return ended.set


def waits(client: Client, limit_s: float, again_s: float) -> float | None:
    """Return the seconds after which to look again, None when the stack may stop."""
    try:
        left = limit_s - float(client.health()["idle_s"])
        if left > 0:
            # As long as nobody can have been idle for the whole time, nobody needs to be asked.
            return left
        return again_s if _is_busy(client) else None
    except ReverieError as error:
        log.debug("not known to be idle: %s", error)
        return again_s


def _is_busy(client: Client) -> bool:
    names = [workspace["id"] for workspace in client.workspaces()["items"]]
    return any(_has_work(client, name) for name in names)


def _has_work(client: Client, workspace: str) -> bool:
    if any(client.queue(workspace)["pending"].values()):
        return True
    jobs: dict[str, Any] = client.call("GET", "/v1/jobs", workspace=workspace)
    # A run that was interrupted is taken up again at once.
    return any(job["last_run"] is not None and job["last_run"]["ended_at"] is None for job in jobs["items"])
