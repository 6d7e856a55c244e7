"""Claim a batch of a stage, run it, and handle failures, until nothing is due."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pipeline.kernel.errors import EncoderPending, EncoderUnavailable, IndexUnavailable, StoreUnavailable
from pipeline.kernel.records import Stage
from pipeline.kernel.records.digestion import WorkItem
from pipeline.kernel.store import work
from pipeline.kernel.store.database import Database


class StageRunner(Protocol):
    """A stage of a workspace."""

    def load(self) -> None:
        """Load the stage's models before anything is claimed, so that no lease waits for a model."""

    def run(self, items: Sequence[WorkItem], owner: str) -> None:
        """Digest claimed items and complete those that the owner still has, each at most once."""


# Seconds until a stage asks again for an encoder that is being made.
PENDING_S = 3.0

StageRegistry = Mapping[Stage, StageRunner]


def run_each(database: Database, items: Sequence[WorkItem], owner: str, run: Callable[[WorkItem], None]) -> None:
    """Run items one after another, and postpone each that needs an encoder that is being made.

    Each item has its own transaction: a worker that dies between two repeats none.
    """
    for item in items:
        try:
            run(item)
        except EncoderPending:
            with database.write() as db:
                work.postpone(db, [item], owner, time.time() + PENDING_S)


@dataclass(frozen=True, slots=True)
class DigestPolicy:
    """Batch size, lease time, and retry delays (seconds)."""

    batch: int
    lease_s: float
    backoff_s: float


@dataclass(frozen=True, slots=True)
class DigestReport:
    """The number of claimed items, whether more are due, and the seconds until the next retry.

    With `shared`, another thread was asked to help with due items.
    """

    claimed: int
    more: bool
    retry_in_s: float | None
    shared: bool = False


ErrorLog = Callable[[str], None]


def request_no_help() -> None:
    """Do not ask for help."""


def digest(
    database: Database,
    stage: Stage,
    runner: StageRunner,
    owner: str,
    policy: DigestPolicy,
    log: ErrorLog,
    until: float,
    share: Callable[[], None] = request_no_help,
) -> DigestReport:
    """Process a stage of a workspace until a time (time.monotonic seconds); ask for help with a backlog once.

    Raises StoreUnavailable, IndexUnavailable or EncoderUnavailable if the environment, not a memory, is at fault.
    """
    with database.read() as db:
        if stage not in work.list_due_stages(db, time.time()):
            return DigestReport(0, more=False, retry_in_s=None)
    claimed, shared = 0, False
    try:
        while items := _claim(database, stage, runner, owner, policy):
            claimed += len(items)
            _run(database, runner, items, owner, policy, log)
            if len(items) == policy.batch and not shared:
                # Only after a successful batch: otherwise, failing tasks would start each other forever.
                share()
                shared = True
            if time.monotonic() >= until:
                break
    except EncoderPending:
        # Other stages continue meanwhile.
        return DigestReport(claimed, more=False, retry_in_s=PENDING_S, shared=shared)
    now = time.time()
    with database.read() as db:
        wake = work.find_next_due(db, stage)
    return DigestReport(
        claimed, wake is not None and wake <= now, None if wake is None else max(0.0, wake - now), shared
    )


def _claim(database: Database, stage: Stage, runner: StageRunner, owner: str, policy: DigestPolicy) -> list[WorkItem]:
    # Before each batch: the last one may have changed the encoder.
    runner.load()
    with database.write() as db:
        return work.claim(db, stage, owner, limit=policy.batch, lease_s=policy.lease_s, now=time.time())


def _run(
    database: Database,
    runner: StageRunner,
    items: Sequence[WorkItem],
    owner: str,
    policy: DigestPolicy,
    log: ErrorLog,
) -> None:
    try:
        runner.run(items, owner)
    except (StoreUnavailable, IndexUnavailable, EncoderUnavailable, KeyboardInterrupt):
        # No memory is at fault: the items are returned without counting a try.
        with database.write() as db:
            work.release(db, items, owner)
        raise
    except Exception as error:  # noqa: BLE001 - any error of a library becomes the memory's error
        if len(items) == 1:
            _record_failure(database, items[0], owner, error, policy, log)
        # One memory can fail a batch; run alone, only that memory fails.
        for item in items if len(items) > 1 else ():
            _run(database, runner, [item], owner, policy, log)


def _record_failure(
    database: Database, item: WorkItem, owner: str, error: Exception, policy: DigestPolicy, log: ErrorLog
) -> None:
    reason = f"{type(error).__name__}: {error}"
    with database.write() as db:
        dead = work.fail(db, item, owner, reason, backoff_s=policy.backoff_s, now=time.time())
    state = "dead letter" if dead else f"try {item.attempts} of {work.MAX_ATTEMPTS}"
    log(f"memory {item.seq}, {item.stage}: {reason} ({state})")
