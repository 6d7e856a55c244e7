"""Feedback: what reading teaches the store, written in the background.

Which memories were put before an agent and whether lessons were followed, how often memories were recalled, what was
asked, which index cannot be read. One thread writes it all in order: an impression of a moment ago is stored before
the answer to it. Of what is incognito nothing comes here; of a workspace that is read only, to all or to who asks,
nothing is noted.
"""

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from sqlite3 import Connection
from typing import TypeVar

from pipeline.features.predictions import store as predictions
from pipeline.features.predictions.store import MAX_QUESTION_CHARS
from pipeline.index.encoders import follows_languages
from pipeline.kernel.errors import IndexUnavailable, NotFound, ReverieError, StorageUnreachable
from pipeline.kernel.records import Memory
from pipeline.kernel.records.recall import Channel, Step
from pipeline.kernel.store import changes, impressions, languages, memory_usage, meta, runs
from pipeline.kernel.store.database import Database, wake_on_commit
from pipeline.kernel.store.impressions import Impression
from pipeline.kernel.store.operations import Operations
from pipeline.kernel.times import utc_now
from pipeline.kernel.workspace import Workspace
from pipeline.text.languages import is_foreign
from pipeline.text.redaction import redact

# Memories that wait to be counted; beyond them only those that wait already are. So many take a web server's writes
# some 20 ms once in a while, and agents recall far fewer in five seconds.
MAX_MEMORIES = 1024


# Distinct questions that wait to be written; any beyond them are only counted.
MAX_QUESTIONS = 256
T = TypeVar("T")
# The job's name is part of the contract.
VECTORS_JOB = "vectors"
USAGE_JOB = "touches"
USAGE_EVERY_S = 5.0
# Seconds between two reports that storage is unreachable.
OUTAGE_TOLD_EVERY_S = 60.0
# Maximum seconds that a reader waits for notes; an unwritten note may lead to a memory being shown twice.
PATIENCE_S = 0.05


@dataclass(frozen=True, slots=True)
class NotedUsage:
    """Recalls by row number; how many questions were asked, and how often each whose text may be looked at.

    `answered` is how many questions a stored answer answered.
    """

    accesses: Mapping[int, int] = field(default_factory=dict)
    questions: int = 0
    texts: Mapping[str, int] = field(default_factory=dict)
    answered: int = 0


class UsageBuffer:
    """Count recalls and questions, from any thread, until the writer takes the counts.

    A crash loses the notes of the last seconds. That is accepted: they weigh what fades and help to foresee what is
    asked next, and an acknowledged memory is never among what is lost.
    """

    def __init__(self, max_memories: int = MAX_MEMORIES, max_questions: int = MAX_QUESTIONS) -> None:
        self._lock = threading.Lock()
        self._max_memories = max_memories
        self._max_questions = max_questions
        self._accesses: Counter[int] = Counter()
        self._questions = self._answered = 0
        self._texts: Counter[str] = Counter()

    def add_accesses(self, seqs: Iterable[int]) -> None:
        """Count one recall of each memory."""
        with self._lock:
            for seq in seqs:
                self._count_access(seq, 1)

    def add_question(self, text: str, *, is_answered: bool = False) -> None:
        """Note that a question was asked, and whether a stored answer answered it; a long one is only counted."""
        with self._lock:
            self._questions += 1
            self._answered += is_answered
            if len(text) <= MAX_QUESTION_CHARS:
                self._count_text(text, 1)

    def take(self) -> NotedUsage:
        """Return the notes and begin anew."""
        with self._lock:
            noted = NotedUsage(self._accesses, self._questions, self._texts, self._answered)
            self._accesses, self._texts = Counter(), Counter()
            self._questions = self._answered = 0
        return noted

    def drop_questions(self) -> None:
        """Forget the texts of the questions; that they were asked stays counted."""
        with self._lock:
            self._texts.clear()

    def put_back(self, noted: NotedUsage) -> None:
        """Note again what was taken and could not be written."""
        with self._lock:
            self._questions += noted.questions
            self._answered += noted.answered
            for seq, count in noted.accesses.items():
                self._count_access(seq, count)
            for text, count in noted.texts.items():
                self._count_text(text, count)

    def _count_access(self, seq: int, count: int) -> None:
        if seq in self._accesses or len(self._accesses) < self._max_memories:
            self._accesses[seq] += count

    def _count_text(self, text: str, count: int) -> None:
        if text in self._texts or len(self._texts) < self._max_questions:
            self._texts[text] += count


def write_usage(db: Connection, noted: NotedUsage, at: str) -> int:
    """Write taken notes within a transaction; return how many memories were counted.

    Nothing enters the change log: neither a recall nor a question changes an answer before the next nightly job. Of a
    question that contains a secret, no word is stored.
    """
    if noted.questions:
        texts = {text: times for text, times in noted.texts.items() if redact(text).text == text}
        predictions.note(db, noted.questions, texts, at, noted.answered)
    return memory_usage.add_accesses(db, noted.accesses, at) if noted.accesses else 0


def note_languages(db: Connection, noted: NotedUsage, *, embed_again: bool) -> None:
    """Note in which languages was asked, within a transaction, until that has shown another language than English."""
    if noted.texts and languages.find_other_languages(db) is None:
        foreign = sum(times for text, times in noted.texts.items() if is_foreign(text))
        shown = languages.note_questions(db, foreign, sum(noted.texts.values()))
        if shown is not None:
            languages.record_other_languages(db, shown, embed_again=embed_again)


@dataclass(frozen=True, slots=True)
class _NotedOf:
    """A workspace and what was noted of its usage."""

    workspace: Workspace
    buffer: UsageBuffer = field(default_factory=UsageBuffer)


class FeedbackWriter:
    """Take notes for the store without keeping a reader waiting."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="feedback")
        # Of the workspaces for which something was noted that is not written.
        self._usage: dict[str, _NotedOf] = {}
        self._usage_lock = threading.Lock()
        self._outages: dict[tuple[str, Channel | Step], float] = {}
        self._noted = threading.Event()
        self._stopped = threading.Event()
        self._timer = threading.Thread(target=self._write_now_and_then, name="usage", daemon=True)
        self._timer.start()

    def submit(self, task: Callable[[], T]) -> "Future[T]":
        """Run something after everything that was noted so far."""
        return self._writer.submit(task)

    def submit_logged(self, component: str, workspace_id: str, task: Callable[[], object]) -> "Future[None]":
        """Run a task in its turn; log its errors."""
        return self._writer.submit(self._run_guarded, component, workspace_id, task)

    def flush(self) -> None:
        """Wait a moment for everything that was noted so far to be written."""
        with suppress(TimeoutError):
            self._writer.submit(lambda: None).result(timeout=PATIENCE_S)

    def record_impressions(self, workspace: Workspace, shown: Sequence[Impression]) -> None:
        """Note that memories were put before an agent."""
        if shown and not workspace.access.is_read_only:
            self.submit_logged("impressions", workspace.id, lambda: _add_impressions(workspace.database, shown))

    def record_accesses(self, workspace: Workspace, recalled: Iterable[Memory]) -> None:
        """Note that memories were recalled."""
        if workspace.access.is_read_only:
            return
        with self._usage_lock:
            self._buffer(workspace).add_accesses(memory.seq for memory in recalled)
        self._noted.set()

    def record_question(self, workspace: Workspace, text: str, *, is_answered: bool = False) -> None:
        """Count a question, and whether a stored answer answered it.

        The questions of a person among several are not recorded.
        """
        if workspace.person_id is not None or workspace.access.is_read_only:
            return
        with self._usage_lock:
            self._buffer(workspace).add_question(text, is_answered=is_answered)
        self._noted.set()

    def drop_questions(self) -> None:
        """Forget the texts of the questions that are not written yet: any of them may quote what is purged."""
        with self._usage_lock:
            for noted in self._usage.values():
                noted.buffer.drop_questions()

    def flush_usage(self, workspace: Workspace) -> None:
        """Write what was noted of a workspace, without waiting for it longer than a moment."""
        if workspace.id in self._usage:
            self._submit_usage(workspace)
        self.flush()

    def write_usage(self, workspace: Workspace) -> str:
        """Write what was noted of a workspace now; return the id of the run."""
        return self._writer.submit(self._write_usage, workspace).result()

    def report_channel_error(self, workspace: Workspace, channel: Channel | Step, error: Exception) -> None:
        """Note that a channel of recall failed; where its index cannot be read, its repair is asked for, once."""
        self._writer.submit(self._report, workspace, channel, error)

    def close(self) -> None:
        """Write what is left and end the threads."""
        self._stopped.set()
        self._noted.set()
        self._timer.join()
        self._writer.shutdown(wait=True)

    def _buffer(self, workspace: Workspace) -> UsageBuffer:
        return self._usage.setdefault(workspace.id, _NotedOf(workspace)).buffer

    def _write_now_and_then(self) -> None:
        while not self._stopped.is_set():
            # Who is idle sleeps: nothing wakes a disk for nothing.
            self._noted.wait()
            self._stopped.wait(USAGE_EVERY_S)
            self._noted.clear()
            with self._usage_lock:
                workspaces = [noted.workspace for noted in self._usage.values()]
            for workspace in workspaces:
                self._submit_usage(workspace)

    def _submit_usage(self, workspace: Workspace) -> None:
        self.submit_logged(USAGE_JOB, workspace.id, lambda: self._write_usage(workspace))

    def _write_usage(self, workspace: Workspace) -> str:
        now, noted = utc_now(), self._take_usage(workspace)
        try:
            with workspace.database.write() as db:
                counted = write_usage(db, noted, now)
                note_languages(db, noted, embed_again=follows_languages(workspace.home_settings))
                run_id = runs.begin(db, USAGE_JOB, now, changes.generation(db))
                runs.end(db, run_id, utc_now(), {"memories": counted}, None)
        except NotFound:
            # The workspace was deleted since, so its recalls are not needed.
            raise
        except ReverieError:
            with self._usage_lock:
                self._buffer(workspace).put_back(noted)
            raise
        return run_id

    def _take_usage(self, workspace: Workspace) -> NotedUsage:
        with self._usage_lock:
            noted = self._usage.pop(workspace.id, None)
        return NotedUsage() if noted is None else noted.buffer.take()

    def _report(self, workspace: Workspace, channel: Channel | Step, error: Exception) -> None:
        if isinstance(error, StorageUnreachable) and not self._outage_is_news(workspace, channel):
            return
        if not isinstance(error, IndexUnavailable) or _ask_for_repair(workspace.database, channel, error):
            self._operations.record_error(f"recall.{channel}", str(error), workspace=workspace.id)

    def _outage_is_news(self, workspace: Workspace, channel: Channel | Step) -> bool:
        # Otherwise every search would add the same error to the log.
        key, now = (workspace.id, channel), time.monotonic()
        if now < self._outages.get(key, -math.inf) + OUTAGE_TOLD_EVERY_S:
            return False
        self._outages[key] = now
        return True

    def _run_guarded(self, component: str, workspace_id: str, task: Callable[[], object]) -> None:
        try:
            task()
        except ReverieError as error:
            self._operations.record_error(component, str(error), workspace=workspace_id)
        except Exception as error:  # noqa: BLE001 - nobody waits for the result: unlogged, it would be lost
            self._operations.record_error(component, f"{type(error).__name__}: {error}", workspace=workspace_id)


def _ask_for_repair(database: Database, channel: Channel | Step, error: IndexUnavailable) -> bool:
    """Ask for what repairs a channel's index; return whether there was a reason to."""
    match channel:
        case Channel.LEXICAL:
            return ask_for_segment(database, error.part)
        case Channel.DENSE:
            return ask_for_vectors(database)
        case _:
            return True


def ask_for_vectors(database: Database) -> bool:
    """Request the repair of the vectors; return whether it was not requested yet."""
    with database.write() as db:
        if VECTORS_JOB in runs.list_requested(db):
            return False
        runs.request(db, VECTORS_JOB, utc_now())
        return True


def ask_for_segment(database: Database, broken: str | None) -> bool:
    """Ask for a new lexical segment because this one cannot be read; return whether there was a reason to.

    There is none when somebody has asked already, or when another segment is current by now: reports come in late.
    """
    with database.write() as db:
        if meta.get(db, meta.SEGMENT_WANTED) is not None or meta.get(db, meta.SEGMENT) != broken:
            return False
        meta.put(db, meta.SEGMENT_WANTED, "0")
        wake_on_commit(db, None)
        return True


def _add_impressions(database: Database, shown: Sequence[Impression]) -> None:
    with database.write() as db:
        impressions.add(db, shown)
