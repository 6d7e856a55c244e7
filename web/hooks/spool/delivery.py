"""Deliver the spool from the web server: the oldest request first, each through the app like an HTTP request.

Requests of one session, and writes to one workspace, keep their order. Others pass a request that must wait.
"""

import errno
import json
import logging
import os
import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterable
from enum import Enum, auto
from http import HTTPStatus
from pathlib import Path

from config.paths import SPOOL_BEGUN, SPOOL_ENDING, SPOOL_REFUSED, WORKSPACE_HEADER
from pipeline.bootstrap.web import WebContainer
from web.hooks.event_fields import unify_fields
from web.hooks.spool.files import (
    MOST_REFUSED,
    SpooledRequest,
    deliver_held,
    list_files,
    read_request,
    sync_folder,
    time_of,
)
from web.hooks.spool.writes import list_items
from web.http.connections import Wsgi
from web.http.contract import SPOOLED_AGAIN, SPOOLED_HEADER
from web.http.json_text import ReadObject

LOOK_EVERY_S = 2.0
# A request that fails with an unexpected error is refused after so many attempts.
MOST_ATTEMPTS = 5
# A pass over the spool ends after so many requests that must wait: each may have waited for a lock.
MOST_WAITING = 10
WRITTEN_WITHIN_S = 30.0
# An incomplete file of a killed program is deleted after this time.
DRAFT_AGE_S = 3600.0
COMPONENT = "spool"
# Refusals of any request that end: the token was renewed, the server is busy, or the request timed out.
_OF_ALL = frozenset((HTTPStatus.UNAUTHORIZED, HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS))
# Also those of a workspace: its store is locked, full or damaged.
_TEMPORARY = _OF_ALL | {HTTPStatus.SERVICE_UNAVAILABLE}

# Errors that concern every file.
_OF_THE_DISK = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE))

log = logging.getLogger(__name__)


class _Outcome(Enum):
    """What became of a request: it left the spool, it waits for an earlier one, or it was refused temporarily.

    After `STOPS`, every other request would be refused, too.
    """

    LEFT = auto()
    BEHIND = auto()
    WAITS = auto()
    STOPS = auto()


class SpoolDelivery:
    """Delivers the waiting requests of a data directory in a thread of its web server."""

    def __init__(self, container: WebContainer, app: Wsgi, clock: Callable[[], float] = time.monotonic) -> None:
        self._container = container
        self._app = app
        self._home = str(container.settings.paths.root)
        self._folder = container.settings.paths.spool
        self._attempts: dict[str, int] = {}
        self._lanes = Lanes(clock)
        # The lanes of waiting requests, so that each file is not read in every pass.
        self._lanes_of_file: dict[str, frozenset[str]] = {}
        self._thread = threading.Thread(target=self._run, name="spool", daemon=True)

    def start(self) -> None:
        """Start the thread. It ends when the server stops."""
        self._remove_drafts()
        deliver_held(self._folder)
        self._thread.start()

    def close(self) -> None:
        """Wait for the request that is being delivered."""
        if self._thread.is_alive():
            self._thread.join(WRITTEN_WITHIN_S)

    def _run(self) -> None:
        stopping = self._container.stopping
        while not stopping.is_set():
            try:
                self.deliver_all()
            except Exception as error:  # noqa: BLE001 - the thread must survive a full disk or a damaged folder
                self._container.operations.record_error_once(COMPONENT, f"{type(error).__name__}: {error}")
            stopping.wait(LOOK_EVERY_S)

    def deliver_all(self) -> int:
        """Deliver each request that waits for no other one, in order; return the number of requests that left."""
        left = waiting = 0
        files = list_files(self._home)
        self._lanes.start_pass()
        for gone in self._lanes_of_file.keys() - files:
            del self._lanes_of_file[gone]
        for file in files:
            if self._container.stopping.is_set() or waiting == MOST_WAITING:
                break
            outcome = self._deliver_any(file)
            left += outcome is _Outcome.LEFT
            waiting += outcome is _Outcome.WAITS
            if outcome is _Outcome.STOPS:
                break
        return left

    def _deliver_any(self, file: str) -> _Outcome:
        """Deliver a request; move its file aside if that fails again and again, so that no other request waits."""
        try:
            return self._deliver(file)
        except Exception as error:
            if isinstance(error, OSError) and error.errno in _OF_THE_DISK:
                raise
            begun = _name_begun(file)
            self._attempts[begun] = self._attempts.get(begun, 0) + 1
            if self._attempts[begun] < MOST_ATTEMPTS:
                self._lanes.block(self._lanes_of_file.get(file, frozenset()))
                return _Outcome.WAITS
            return self._move_aside(file, f"{type(error).__name__}: {error}")

    def _move_aside(self, file: str, reason: str) -> _Outcome:
        for name in (_name_begun(file), file):
            if os.path.lexists(self._folder / name):
                try:
                    self._refuse(name, reason)
                except OSError as error:
                    self._container.operations.record_error_once(COMPONENT, f"{name} cannot be moved aside: {error}")
                    return _Outcome.WAITS
        return _Outcome.LEFT

    def _deliver(self, file: str) -> _Outcome:
        """Deliver a request unless an earlier one of its session or workspace waits."""
        try:
            if file not in self._lanes_of_file:
                self._lanes_of_file[file] = find_lanes(read_request(self._home, file))
            lanes = self._lanes_of_file[file]
            if self._lanes.is_blocked(lanes):
                self._lanes.block(lanes)
                return _Outcome.BEHIND
            # After a crash, the name says that this request was started before.
            is_repeated, begun = file.endswith(SPOOL_BEGUN), _name_begun(file)
            if not is_repeated:
                (self._folder / file).replace(self._folder / begun)
                sync_folder(str(self._folder))
            # Again: a purge may have changed a file that was not started yet.
            request = read_request(self._home, begun)
        except FileNotFoundError:
            # A purge has deleted it.
            return _Outcome.LEFT
        except ValueError as error:
            return self._move_aside(file, f"{file}: {error}")
        outcome = self._settle(request, file, begun, is_repeated=is_repeated)
        if outcome is _Outcome.LEFT:
            self._lanes.resume(lanes)
        elif outcome is _Outcome.WAITS:
            self._pause(lanes, request)
        return outcome

    def _settle(self, request: SpooledRequest, file: str, begun: str, *, is_repeated: bool) -> _Outcome:
        """Send a request whose delivery was started, and remove it, move it aside or keep it by the answer."""
        status, detail = self._send(request, begun, is_repeated=is_repeated)
        if status < HTTPStatus.BAD_REQUEST:
            # Hook events are recorded in the background: the file stays until they are written.
            self._container.feedback.submit(lambda: None).result(timeout=WRITTEN_WITHIN_S)
            self._remove(begun)
            return _Outcome.LEFT
        self._attempts[begun] = self._attempts.get(begun, 0) + 1
        is_lasting = status < HTTPStatus.INTERNAL_SERVER_ERROR or self._attempts[begun] >= MOST_ATTEMPTS
        if status not in _TEMPORARY and is_lasting:
            self._refuse(begun, f"{request.method} {request.path}: HTTP {status}: {detail}")
            return _Outcome.LEFT
        if not is_repeated and status in _TEMPORARY:
            # Nothing of it was carried out.
            (self._folder / begun).replace(self._folder / file)
            self._attempts.pop(begun)
        return _Outcome.STOPS if status in _OF_ALL else _Outcome.WAITS

    def _pause(self, lanes: frozenset[str], request: SpooledRequest) -> None:
        if self._lanes.pause(lanes) == LONGEST_PAUSE_S:
            self._container.operations.record_error_once(
                COMPONENT, f"{request.method} {request.path} in the spool is refused again and again; see its workspace"
            )

    def _send(self, request: SpooledRequest, file: str, *, is_repeated: bool) -> tuple[int, str]:
        """Run a request in the app as the owner of the data directory; return the status and the error."""
        # Imported for the first delivery: a server without a spool does not need it.
        from werkzeug.test import EnvironBuilder, run_wsgi_app

        settings = self._container.settings
        mark = str(time_of(file)) + (f" {SPOOLED_AGAIN}" if is_repeated else "")
        headers = {**request.headers, "Authorization": f"Bearer {self._container.token}", SPOOLED_HEADER: mark}
        builder = EnvironBuilder(
            path=request.path,
            method=request.method,
            base_url=f"http://127.0.0.1:{settings.port}/",
            headers=list(headers.items()),
            data=json.dumps(request.body, ensure_ascii=False).encode(),
            content_type="application/json",
            environ_base={"REMOTE_ADDR": "127.0.0.1"},
        )
        chunks, status, _ = run_wsgi_app(self._app, builder.get_environ(), buffered=True)
        answer = b"".join(chunks)
        code = int(status.partition(" ")[0])
        return code, "" if code < HTTPStatus.BAD_REQUEST else _read_detail(answer)

    def _refuse(self, file: str, reason: str) -> None:
        """Log a request that can never be delivered, and move it aside."""
        folder = self._folder / SPOOL_REFUSED
        folder.mkdir(mode=0o700, exist_ok=True)
        (self._folder / file).rename(folder / file)
        sync_folder(str(self._folder))
        self._attempts.pop(file, None)
        self._container.operations.record_error(COMPONENT, f"A spooled request was refused and moved aside: {reason}")
        for old in sorted(folder.iterdir())[:-MOST_REFUSED]:
            if old.is_dir() and not old.is_symlink():
                shutil.rmtree(old)
            else:
                old.unlink(missing_ok=True)

    def _remove(self, file: str) -> None:
        (self._folder / file).unlink(missing_ok=True)
        sync_folder(str(self._folder))
        self._attempts.pop(file, None)

    def _remove_drafts(self) -> None:
        try:
            drafts = [path for path in self._folder.glob(f".*{SPOOL_ENDING}") if _is_old(path)]
        except OSError:
            return
        for draft in drafts:
            draft.unlink(missing_ok=True)


def _name_begun(file: str) -> str:
    return f"{file.removesuffix(SPOOL_BEGUN).removesuffix(SPOOL_ENDING)}{SPOOL_BEGUN}"


def _is_old(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime > DRAFT_AGE_S
    except FileNotFoundError:
        return False


def _read_detail(answer: bytes) -> str:
    try:
        problem = json.loads(answer)
    except ValueError:
        return ""
    if not isinstance(problem, dict):
        return ""
    fields = [f"{item.get('loc')} {item.get('msg')}" for item in problem.get("errors", ()) if isinstance(item, dict)]
    return "; ".join([str(problem.get("detail") or problem.get("title") or ""), *fields])


FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 300.0


def find_lanes(request: SpooledRequest) -> frozenset[str]:
    """Return the sessions and the workspace in which a request must keep its order."""
    body = request.body if isinstance(request.body, dict) else {}
    if WORKSPACE_HEADER in request.headers and not request.path.startswith("/hooks/"):
        sessions = (item.get("session_id") for item in list_items(body))
        named = [f"session {session}" for session in sessions if session]
        return frozenset([f"workspace {request.headers[WORKSPACE_HEADER]}", *named])
    # The workspace of a hook event follows from its folder, which only the server looks up.
    fields = unify_fields(ReadObject(body)).fields
    session = fields.get("session_id")
    return frozenset([f"session {session}" if session else f"folder {fields.get('cwd')}"])


class Lanes:
    """The lanes whose first request was refused temporarily, each with a pause that doubles with every refusal."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        # The end of the pause by the clock, and its length in seconds.
        self._pauses: dict[str, tuple[float, float]] = {}
        self._blocked: set[str] = set()

    def start_pass(self) -> None:
        """Start a pass over the spool: lanes whose pause is over may be tried again."""
        now = self._clock()
        self._blocked = {lane for lane, (ends_at, _) in self._pauses.items() if now < ends_at}

    def is_blocked(self, lanes: Iterable[str]) -> bool:
        """Return whether an earlier request of one of the lanes waits."""
        return not self._blocked.isdisjoint(lanes)

    def block(self, lanes: Iterable[str]) -> None:
        """Keep back later requests of the lanes in this pass: the request before them waits."""
        self._blocked.update(lanes)

    def pause(self, lanes: Collection[str]) -> float:
        """Keep back the requests of the lanes for a while, twice as long as the last time; return the seconds."""
        last_s = max((self._pauses[lane][1] for lane in lanes if lane in self._pauses), default=FIRST_PAUSE_S / 2)
        length_s = min(2 * last_s, LONGEST_PAUSE_S)
        for lane in lanes:
            self._pauses[lane] = self._clock() + length_s, length_s
        self.block(lanes)
        return length_s

    def resume(self, lanes: Iterable[str]) -> None:
        """Forget the pauses of lanes in which a request was delivered or moved aside."""
        for lane in lanes:
            self._pauses.pop(lane, None)
