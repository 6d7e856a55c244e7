"""What reading teaches the store, written beside the traffic: which lessons were shown and followed, what was recalled.

One thread does it all in order: what was shown a moment ago is stored before its answer is.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial

from ulid import ULID

from pipeline.errors import ReverieError
from pipeline.records import Memory
from pipeline.store import changes, incognito, runs
from pipeline.store.database import Database, Databases
from pipeline.store.operations import Operations
from pipeline.store.surfaces import Surfacing
from pipeline.times import utc_now
from pipeline.write.feedback import answer_surfaced, note_surfaced
from pipeline.write.questions import QuestionBuffer, write_questions
from pipeline.write.touches import TouchBuffer, write_touches

TOUCHES = "touches"
TOUCHES_EVERY_S = 5.0
# The best few of an answer are what it was asked for.
TOUCHED = 10
# A reader waits no longer than this for notes; what is still unwritten then is told once more at worst.
PATIENCE_S = 0.05


class Learning:
    """Take notes for the store without keeping a reader waiting."""

    def __init__(self, databases: Databases, operations: Operations, silent: Callable[[str], bool]) -> None:
        self._databases = databases
        self._operations = operations
        self._silent = silent
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="learning")
        self._buffers: dict[str, TouchBuffer] = {}
        self._questions: dict[str, QuestionBuffer] = {}
        self._touched = threading.Event()
        self._stopped = threading.Event()
        self._timer = threading.Thread(target=self._write_now_and_then, name="touches", daemon=True)
        self._timer.start()

    def submit(self, task: Callable[[], object]) -> "Future[object]":
        """Run something after everything that was noted so far."""
        return self._writer.submit(task)

    def settle(self) -> None:
        """Wait a moment for everything that was noted so far to be written."""
        with suppress(TimeoutError):
            self._writer.submit(lambda: None).result(timeout=PATIENCE_S)

    def submit_logged(self, component: str, workspace_id: str, task: Callable[[], None]) -> None:
        """Run something in its turn; what goes wrong stands in the error log."""
        self._writer.submit(self._guarded, component, workspace_id, task)

    def surface(self, workspace_id: str, session_id: str | None, shown: Sequence[Memory]) -> list[str]:
        """Give an id to each memory that is put before an agent, and note that it was."""
        surfacings = self.surfacings(session_id, shown)
        self.note_surfaced(workspace_id, surfacings)
        return [one.id for one in surfacings]

    def surfacings(
        self, session_id: str | None, shown: Sequence[Memory], agent_id: str | None = None
    ) -> list[Surfacing]:
        """Give an id to each memory that is about to be put before an agent of a session, or a subagent of it."""
        now = utc_now()
        return [Surfacing(str(ULID()), memory.seq, session_id, now, agent_id=agent_id) for memory in shown]

    def note_surfaced(self, workspace_id: str, surfacings: Sequence[Surfacing]) -> None:
        """Note that memories were put before an agent."""
        if surfacings and not self._silent(workspace_id):
            self._writer.submit(self._logged, "surfaces", workspace_id, lambda db: note_surfaced(db, surfacings))

    def answer_surfaced(self, workspace_id: str, surface_id: str, note: str | None, *, followed: bool) -> str:
        """Say whether a lesson was followed; return its id. Raises NotFound for an unknown surfacing."""
        database = self._databases.get(workspace_id)
        said = None if self._silent(workspace_id) else note
        return self._writer.submit(partial(answer_surfaced, database, surface_id, said, followed=followed)).result()

    def touch(self, workspace_id: str, recalled: Iterable[Memory]) -> None:
        """Note that memories were recalled."""
        if self._silent(workspace_id):
            return
        self._buffers.setdefault(workspace_id, TouchBuffer()).note(memory.seq for memory in recalled)
        self._touched.set()

    def ask(self, workspace_id: str, text: str, sessions: Sequence[str]) -> None:
        """Note that a question was asked, unless one of its sessions is off the record."""
        database = self._databases.get(workspace_id)
        if self._silent(workspace_id):
            return
        if sessions:
            with database.read() as db:
                if any(incognito.since(db, session) is not None for session in sessions):
                    return
        self._questions.setdefault(workspace_id, QuestionBuffer()).note(text)
        self._buffers.setdefault(workspace_id, TouchBuffer())
        self._touched.set()

    def flush(self, workspace_id: str) -> None:
        """Write what was noted of a workspace, without waiting for it longer than a moment."""
        if workspace_id in self._buffers:
            self._writer.submit(
                self._logged, TOUCHES, workspace_id, partial(self._write_touches, workspace_id=workspace_id)
            )
        self.settle()

    def write_touches(self, workspace_id: str) -> str:
        """Write what was noted of a workspace now; return the id of the run."""
        return self._writer.submit(self._write_touches, self._databases.get(workspace_id), workspace_id).result()

    def close(self) -> None:
        """Write what is left and end the threads."""
        self._stopped.set()
        self._touched.set()
        self._timer.join()
        self._writer.shutdown(wait=True)

    def _write_now_and_then(self) -> None:
        while not self._stopped.is_set():
            # Who is idle sleeps: nothing wakes a disk for nothing.
            self._touched.wait()
            self._stopped.wait(TOUCHES_EVERY_S)
            self._touched.clear()
            for workspace_id in list(self._buffers):
                self._writer.submit(
                    self._logged, TOUCHES, workspace_id, partial(self._write_touches, workspace_id=workspace_id)
                )

    def _write_touches(self, database: Database, workspace_id: str) -> str:
        buffer = self._buffers.setdefault(workspace_id, TouchBuffer())
        counts, now = buffer.take(), utc_now()
        try:
            touched = write_touches(database, counts, now)
        except ReverieError:
            buffer.put_back(counts)
            raise
        asked = self._questions.setdefault(workspace_id, QuestionBuffer()).take()
        with database.write() as db:
            write_questions(db, asked, now)
            run_id = runs.begin(db, TOUCHES, now, changes.generation(db))
            runs.end(db, run_id, utc_now(), {"memories": touched}, None)
        return run_id

    def _logged(self, component: str, workspace_id: str, task: Callable[[Database], object]) -> None:
        self._guarded(component, workspace_id, lambda: task(self._databases.get(workspace_id)))

    def _guarded(self, component: str, workspace_id: str, task: Callable[[], object]) -> None:
        try:
            task()
        except ReverieError as error:
            self._operations.record_error(component, str(error), workspace=workspace_id)
        except Exception as error:  # noqa: BLE001 - nobody waits for the result: unlogged, it would be lost
            self._operations.record_error(component, f"{type(error).__name__}: {error}", workspace=workspace_id)
