"""The health job: check invariants across store and indexes, repair derived data, report everything else."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from config.paths import WorkspacePaths
from pipeline.features.entities import store as entities
from pipeline.index.segment import Segment, load_segment
from pipeline.index.storage import SharedSegments
from pipeline.kernel.errors import IndexUnavailable
from pipeline.kernel.job_runs import JobRun, Report
from pipeline.kernel.store import invariants, meta, row_hashes
from pipeline.kernel.store.database import Database
from pipeline.kernel.store.log_start import list_differences
from pipeline.kernel.store.replicated_records import MEMORY
from pipeline.kernel.store.tables import WORKSPACE

# A larger file is read completely only once a day, when its snapshot is verified.
READ_WHOLE_BYTES = 64 * 1024 * 1024
# Keeps a repair transaction to a few milliseconds.
PIECE = 50
# A report names at most this many broken items.
NAMED = 3
DAMAGE, LOG = "damage", "log"


@dataclass(frozen=True, slots=True)
class HealthProblem:
    """A violated invariant: number of items, check, description, and whether the next run repairs it."""

    check: str
    count: int
    says: str
    repairable: bool


@dataclass(frozen=True, slots=True)
class _Check:
    """A query that returns only violations. Without `repair`, the data is not derived and cannot be rebuilt."""

    name: str
    says: str
    find: Callable[[], Sequence[Any]]
    repair: Callable[[Connection, Sequence[Any]], object] | None = None


def health(
    job: JobRun,
    paths: WorkspacePaths,
    repair_vectors: Callable[[], int],
    on_problem: Callable[[str], object],
    segments: SharedSegments | None = None,
) -> Report:
    """Run all checks. A healthy workspace is not written to.

    `repair_vectors` queues memories that are missing from the vector index and returns their number. `on_problem`
    receives each problem that cannot be repaired once, and again only when the number of items grew. The counts are
    violations per check.
    """
    with job.database.read() as db:
        known = invariants.last_counts(db, "health")
    checks = _checks(job.database, paths, segments)
    if job.database.measure() > READ_WHOLE_BYTES:
        # Comparing 100,000 memories with the log takes 20 s, so only `reverie doctor` does it, not the hourly job.
        checks = [check for check in checks if check.name != LOG]
    counts: dict[str, int] = {}
    for number, check in enumerate(checks):
        if job.pausing():
            return Report(counts, more=True)
        violations, finished = _run(check, job)
        if violations:
            counts[check.name] = len(violations)
        if check.repair is None and len(violations) > known.get(check.name, 0):
            on_problem(_describe(check, violations))
        if check.name == DAMAGE and violations:
            # Other violations follow from damage, and a repair could make it worse.
            return Report(counts)
        if not finished:
            return Report(counts, more=True)
        job.progress(number + 1, len(checks) + 1)
    if job.pausing():
        return Report(counts, more=True)
    if lost := repair_vectors():
        counts["vectors"] = lost
    job.progress(len(checks) + 1, len(checks) + 1)
    return Report(counts)


def examine(database: Database, paths: WorkspacePaths, segments: SharedSegments | None = None) -> list[HealthProblem]:
    """Return current problems without repairing anything; of many broken rows it may count only the first."""
    problems = []
    for check in _checks(database, paths, segments):
        violations = check.find()
        if violations:
            problems.append(
                HealthProblem(check.name, len(violations), _describe(check, violations), check.repair is not None)
            )
            if check.name == DAMAGE:
                break
    return problems


def _run(check: _Check, job: JobRun) -> tuple[list[Any], bool]:
    """Return the violations that a check found, and whether the check was completed."""
    every: list[Any] = []
    while violations := check.find():
        every.extend(violations)
        if check.repair is None:
            break
        for piece in _pieces(violations):
            with job.database.write() as db:
                check.repair(db, piece)
            if job.pausing():
                return every, False
        if len(violations) < invariants.BATCH:
            break
    return every, True


def _pieces(violations: Sequence[Any]) -> Iterator[list[Any]]:
    rest = iter(violations)
    while piece := list(islice(rest, PIECE)):
        yield piece


def _describe(check: _Check, violations: Sequence[Any]) -> str:
    names = ", ".join(str(violation) for violation in violations[:NAMED])
    return f"{check.name}: {len(violations)} {check.says}: {names}{' …' if len(violations) > NAMED else ''}"


def _checks(database: Database, paths: WorkspacePaths, segments: SharedSegments | None) -> list[_Check]:
    def reading(find: Callable[[Connection], Sequence[Any]]) -> Callable[[], Sequence[Any]]:
        def look() -> Sequence[Any]:
            with database.read() as db:
                return find(db)

        return look

    load = partial(load_segment, paths.lexical) if segments is None else segments.load
    damage = _Check(
        DAMAGE,
        "faults in the file; restore a snapshot with `reverie store snapshot restore`",
        partial(_damage, database),
    )
    return [
        # A database server checks its own pages.
        *([] if database.file is None else [damage]),
        _Check("mentions", "mentions without a memory", reading(invariants.list_lost_mentions), _unlink),
        *(
            _Check(
                table.orphans,
                "rows about records that no longer exist",
                reading(partial(invariants.list_broken_rows, table=table)),
                partial(invariants.remove_rows, table=table),
            )
            for table in WORKSPACE
            if table.orphans
        ),
        _Check(
            "segment",
            "faults of the lexical segment",
            partial(_segment_faults, database, load),
            lambda db, _found: invariants.ask_for_segment(db),
        ),
        *(_Check(name, says, reading(find)) for name, says, find in _GIVEN),
        _Check(
            "permissions", "folders and files that other users of this machine can open", partial(_open_places, paths)
        ),
    ]


_GIVEN: Sequence[tuple[str, str, Callable[[Connection], Sequence[str]]]] = (
    *((rule.name, rule.says, partial(invariants.list_named_rows, rule=rule)) for rule in invariants.GIVEN),
    (
        "edits",
        "memories that another program changed, added or deleted; compare each with a snapshot",
        lambda db: [*row_hashes.list_edited(db), *row_hashes.list_deleted(db)],
    ),
    (
        LOG,
        "records that another program changed; restore them from the operation log with `reverie sync repair`",
        lambda db: [
            key.memory_id if key.kind == MEMORY else f"{key.kind} of {key.memory_id}" for key in list_differences(db)
        ],
    ),
)


def _unlink(db: Connection, seqs: Sequence[int]) -> None:
    for seq in seqs:
        entities.unlink(db, seq)


def _damage(database: Database) -> Sequence[str]:
    if database.measure() > READ_WHOLE_BYTES:
        return []
    with database.read() as db:
        return invariants.damage(db)


def _segment_faults(database: Database, load: Callable[[str], Segment]) -> Sequence[str]:
    with database.read() as db:
        if ahead := invariants.list_ahead_of_log(db):
            return [f"{name} is ahead of the change log" for name in ahead]
        if meta.get(db, meta.SEGMENT_WANTED) is not None:
            return []
        name = meta.get(db, meta.SEGMENT)
        outside = invariants.list_segment_only(db)
    try:
        held = set(load(name).rows.tolist()) if name else set()
    except IndexUnavailable as error:
        with database.read() as db:
            # The segment was replaced during the check; the next run checks the new one.
            return [str(error)] if meta.get(db, meta.SEGMENT) == name else []
    missing = len(set(outside) - held)
    return [f"{missing} memories are missing from it and from the tail"] if missing else []


def _open_places(paths: WorkspacePaths) -> Sequence[Path]:
    places = [path for path in (paths.root, paths.snapshots) if path.exists()]
    return [path for path in places if path.stat().st_mode & 0o077]
