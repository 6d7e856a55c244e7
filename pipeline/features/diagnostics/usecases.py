"""Check a data directory and each of its workspaces, with hints and repairs for each problem."""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from config.file_modes import find_public_paths, make_private
from config.operating_system import POSIX
from config.paths import HomePaths, find_access_problem
from config.settings import AUTO, Settings, environment_of, load_settings
from config.toml_files import SettingsError
from pipeline.features.diagnostics import job as health
from pipeline.features.encryption.usecases import describe_encryption
from pipeline.features.indexing.usecases import compile_model
from pipeline.features.maintenance.registry import BY_NAME
from pipeline.features.snapshots.usecases import find_snapshots, take_snapshot, takes_snapshots
from pipeline.features.workspaces.config import list_workspaces, opened_configs
from pipeline.features.workspaces.identify import identify
from pipeline.index import encoders
from pipeline.index.reranker import reranker_name
from pipeline.index.storage import open_storage, shared_segments
from pipeline.kernel.errors import ReverieError, StorageUnreachable, StoreDamaged, StoreUnavailable
from pipeline.kernel.records import CheckResult
from pipeline.kernel.store import backup, home_file, migrations, runs, work
from pipeline.kernel.store.database import Database, WriterProfile
from pipeline.kernel.store.operations import LoggedError, Operations
from pipeline.kernel.store.stores import Stores, open_stores
from pipeline.kernel.times import format_duration
from pipeline.text.redaction import redact

LITTLE_ROOM = 1024**3
NO_ROOM = 100 * 1024**2
OLDEST_PENDING_S = 600.0
OLDEST_SNAPSHOT = timedelta(days=3)
RECENT_ERRORS_S = 24 * 3600.0
ERRORS_READ = 100
# Files that a finding names.
NAMED = 3
# The permissions of the data directory have their own check.
PERMISSIONS = "permissions"

RunJob = Callable[[str, str], str]


@dataclass(frozen=True, slots=True)
class CheckContext:
    """The settings to check, the state of the server and its encoder, and a function that runs a job."""

    settings: Settings
    is_up: bool
    encoder: str | None
    run_job: RunJob
    """Run a job of a workspace and return a description of the result."""

    @property
    def paths(self) -> HomePaths:
        """Return the paths of the data directory."""
        return self.settings.paths


def _opened_stores(settings: Settings) -> closing[Stores]:
    """Open the stores without creating any."""
    return closing(open_stores(settings, WriterProfile("NORMAL", 0), lambda text: redact(text).text))


def check_home(context: CheckContext) -> Iterator[CheckResult]:
    """Check whether the data directory exists, is accessible and has free space."""
    root = context.paths.root
    if not root.exists():
        yield CheckResult(
            "home", "warn", f"{root} is not there yet", "`reverie up` makes it", lambda: _make_home(context)
        )
        return
    problem = find_access_problem(root)
    if problem is not None:
        says, _, hint = problem.partition("; ")
        yield CheckResult("home", "fail", says, hint)
        return
    yield CheckResult("home", "ok", str(root))
    free = shutil.disk_usage(root).free
    says = f"{free / 1024**3:.1f} GiB free"
    hint = f"free some space on the disk of {root}: on a full disk, writes fail"
    yield (
        CheckResult("disk", "ok", says)
        if free >= LITTLE_ROOM
        else CheckResult("disk", "warn" if free >= NO_ROOM else "fail", says, hint)
    )


def _make_home(context: CheckContext) -> str:
    context.paths.ensure()
    return f"made {context.paths.root}"


def check_project_file(folder: Path) -> Iterator[CheckResult]:
    """Report a `.reverie.toml` of the folder's project that is not used, and why."""
    problem = identify(folder).problem
    if problem is not None:
        hint = "correct the file or remove it"
        yield CheckResult("project file", "warn", f"{problem.loc} is not used: {problem.msg}", hint)


def check_permissions(context: CheckContext) -> Iterator[CheckResult]:
    """Check whether other users of this machine can read the data directory."""
    if not POSIX or not context.paths.root.is_dir():
        return
    wrong = list(find_public_paths(context.paths.root))
    if not wrong:
        yield CheckResult("permissions", "ok", "no other user has access")
        return
    grave = any(path in (context.paths.root, context.paths.token_file) for path in wrong)
    says = f"others can enter or read {_name_some(wrong)}"
    hint = f"chmod 700 folders and 600 files: {_name_some(wrong)}"
    yield CheckResult("permissions", "fail" if grave else "warn", says, hint, lambda: _close(wrong))


def _close(paths: Sequence[Path]) -> str:
    return f"closed {_name_some([path for path in paths if make_private(path)])}"


def _name_some(paths: Sequence[Path]) -> str:
    return ", ".join(map(str, paths[:NAMED])) + (f" and {len(paths) - NAMED} more" if len(paths) > NAMED else "")


def check_encryption(context: CheckContext) -> Iterator[CheckResult]:
    """Check whether the data directory is encrypted and its key is available."""
    state = describe_encryption(context.paths)
    if context.settings.store_place:
        yield CheckResult("encryption", "ok", "the store's is its server's")
    elif not state.is_encrypted:
        yield CheckResult("encryption", "ok", "none; `reverie store encrypt` encrypts the store and its snapshots")
    elif state.problem is not None:
        hint = "Nothing is lost, but nothing is stored until the key is available. Snapshots use the same key."
        yield CheckResult("encryption", "fail", state.problem, hint)
    elif state.plain:
        says, hint = f"still plain: {_name_some(state.plain)}", "`reverie down`, then `reverie store encrypt` goes on"
        yield CheckResult("encryption", "warn", says, hint)
    else:
        yield CheckResult("encryption", "ok", f"by the key in {state.key_file}")


def check_model(context: CheckContext) -> Iterator[CheckResult]:
    """Check whether the encoder and the reranker are compiled and, if a server runs, the encoder is loaded."""
    name = encoders.usual_model(context.settings)
    if not encoders.is_encoder_compiled(context.settings, name):
        says, hint = f"{name} is not compiled", "`reverie model compile`; otherwise a worker does when it needs it"
        yield CheckResult("model", "warn", says, hint, lambda: f"compiled in {compile_model(context.settings)}")
    elif context.is_up and context.encoder != "ready":
        yield CheckResult("model", "warn", f"{name} is still loading", "until then, recall goes by words only")
    else:
        yield CheckResult("model", "ok", name)
    reranker = context.settings.reranker
    if reranker and not encoders.is_encoder_compiled(context.settings, reranker_name(reranker)):
        hint = "`reverie model compile`; until then, results keep their order"
        yield CheckResult("reranker", "warn", f"{reranker} is not compiled", hint)


def check_store(context: CheckContext) -> Iterator[CheckResult]:
    """Check whether the database server of the store is available, if one is configured."""
    store_address = context.settings.store_place
    if not store_address:
        yield CheckResult("store", "ok", "files under the home")
        yield from _check_home_file(context)
        return
    try:
        yield CheckResult("store", "ok", f"{len(list_workspaces(context.settings))} workspaces in {store_address}")
    except StoreUnavailable as error:
        yield CheckResult(
            "store", "fail", f"{store_address}: {error}", "nothing is stored or recalled until it can be used"
        )


def _check_home_file(context: CheckContext) -> Iterator[CheckResult]:
    file = context.paths.home
    if not file.exists():
        return
    try:
        with backup.typed_errors(file):
            migrations.is_migrated(file, home_file.MIGRATIONS)
    except StoreUnavailable as error:
        says, _, hint = str(error).partition(". ")
        hint = hint or home_file.REMEDY
        yield CheckResult("home.sqlite", "fail", f"{says}; people, sync, errors and runs of hooks are not read", hint)


def list_checked_workspaces(context: CheckContext) -> list[str]:
    """List the workspaces that can be checked; none if their server is unavailable."""
    try:
        lost = [] if context.settings.store_place else context.paths.lost_workspace_ids()
        return sorted({*list_workspaces(context.settings), *lost})
    except StoreUnavailable:
        # The check of the store reports this.
        return []


def check_workspace(context: CheckContext, name: str) -> Iterator[CheckResult]:
    """Check one workspace."""
    yield from _check_settings(context, name)
    if not context.settings.store_place:
        problem = _find_file_problem(context, name)
        if problem is not None:
            yield problem
            return
    try:
        with _opened_stores(context.settings) as stores:
            database = stores.databases.get(name)
            yield from _check_queue(context, name, database)
            yield from _check_indexes(context, name, database)
            yield from _check_languages(context, name, database)
            yield from _check_jobs(name, database)
            yield from _check_errors(stores.operations, name)
            if takes_snapshots(context.settings):
                yield from _check_snapshots(context, name)
    except ReverieError as error:
        yield CheckResult(f"{name}: store", "fail", str(error), "`reverie logs errors` may show more")


def _find_file_problem(context: CheckContext, name: str) -> CheckResult | None:
    """Return why a workspace's file cannot be checked, without opening the store."""
    file = context.paths.workspace(name).events
    try:
        backup.check_not_lost(file)
        backup.count_memories(file)
    except ReverieError as error:
        hint = "see home, disk and encryption above"
        if isinstance(error, StoreDamaged):
            hint = backup.describe_newest(context.paths.workspace(name))
        return CheckResult(f"{name}: store", "fail", str(error), hint)
    try:
        if not migrations.is_migrated(file, migrations.MIGRATIONS):
            says, hint = "the store is of an older version", "the next start brings it up to date, after a copy"
            return CheckResult(f"{name}: store", "warn", says, hint)
    except ReverieError as error:
        return CheckResult(f"{name}: store", "fail", str(error), "`reverie logs errors` may show more")
    return None


def _check_settings(context: CheckContext, name: str) -> Iterator[CheckResult]:
    with opened_configs(context.settings) as configs:
        state = configs.state(name)
        if state is None:
            return
        try:
            load_settings(environment_of(context.paths), configs.load(name, state))
        except SettingsError as error:
            hint = f"`reverie -w {name} config --edit` corrects it; until then nothing is stored in this workspace"
            yield CheckResult(f"{name}: settings", "fail", str(error), hint)
        else:
            yield CheckResult(f"{name}: settings", "ok", configs.place(name))


def _check_queue(context: CheckContext, name: str, database: Database) -> Iterator[CheckResult]:
    with database.read() as db:
        pending, dead, oldest = sum(work.count_pending(db).values()), work.count_dead(db), work.oldest_pending(db)
    waits_s = 0.0 if oldest is None else max(0.0, time.time() - oldest)
    failed = {stage: count for stage, count in dead.items() if count}
    if failed:
        says = ", ".join(f"{stage} {count}" for stage, count in failed.items())
        hint = f"`reverie -w {name} jobs queue retry` gives them a fresh start"
        yield CheckResult(f"{name}: queue", "fail", f"failed permanently: {says}", hint, lambda: _retry(context, name))
    elif waits_s > OLDEST_PENDING_S and context.is_up:
        hint = "`reverie status` shows whether workers run, `reverie logs errors` what stops them"
        yield CheckResult(f"{name}: queue", "warn", f"{pending} wait, the oldest for {format_duration(waits_s)}", hint)
    else:
        yield CheckResult(f"{name}: queue", "ok", f"{pending} pending")


def _retry(context: CheckContext, name: str) -> str:
    # No worker is notified: the scheduler's next sweep finds the work.
    with _opened_stores(context.settings) as stores, stores.databases.get(name).write() as db:
        return f"{work.retry(db, None)} queued again"


def _check_indexes(context: CheckContext, name: str, database: Database) -> Iterator[CheckResult]:
    paths = context.paths.workspace(name)
    segments = shared_segments(paths, open_storage(context.settings))
    problems = [p for p in health.examine(database, paths, segments) if p.check != PERMISSIONS]
    for problem in problems:
        if problem.repairable:
            hint = f"`reverie -w {name} jobs run health` repairs it"
            yield CheckResult(f"{name}: indexes", "warn", problem.says, hint, lambda: context.run_job(name, "health"))
        else:
            hint = "a backup of the store's server can be put back"
            if takes_snapshots(context.settings):
                hint = f"`reverie -w {name} store snapshot list` shows the copies that can be put back"
            yield CheckResult(f"{name}: store", "fail", problem.says, hint)
    if not problems:
        yield CheckResult(f"{name}: indexes", "ok", "store and indexes agree")


def _check_languages(context: CheckContext, name: str, database: Database) -> Iterator[CheckResult]:
    with database.read() as db:
        progress = encoders.measure_encoder(context.settings, db)
    if progress.languages is None or context.settings.embedding_model != AUTO:
        return
    if encoders.follows_languages(context.settings):
        says = f"{progress.languages} are not in English: embedded by {progress.next_model or progress.model}"
        yield CheckResult(f"{name}: languages", "ok", says)
    else:
        says = f"{progress.languages} are not in English, the only language that {progress.model} knows"
        hint = "`reverie model use intfloat/multilingual-e5-small`, or another model that knows them, from its hub"
        yield CheckResult(f"{name}: languages", "warn", says, hint)


def _check_jobs(name: str, database: Database) -> Iterator[CheckResult]:
    with database.read() as db:
        last = {job: runs.last(db, job) for job in BY_NAME}
    failed = [(job, run) for job, run in last.items() if run is not None and run.ok is False]
    for job, run in failed:
        hint = f"`reverie -w {name} jobs run {job}` runs it now and shows more"
        yield CheckResult(f"{name}: jobs", "warn", f"{job} failed last: {run.error}", hint)
    if not failed:
        yield CheckResult(
            f"{name}: jobs", "ok", f"{sum(run is not None for run in last.values())} have run, none failed"
        )


def _check_errors(operations: Operations, name: str) -> Iterator[CheckResult]:
    errors = operations.errors(workspace=name, limit=ERRORS_READ, open_only=True)
    recent = [error for error in errors if error.at >= time.time() - RECENT_ERRORS_S]
    if recent:
        says = f"{len(recent)} in the last day, the last in {recent[0].component}: {recent[0].message}"
        yield CheckResult(f"{name}: errors", "warn", says, f"`reverie -w {name} logs errors` lists them")
    else:
        yield CheckResult(f"{name}: errors", "ok", "none in the last day that was not repaired")


def list_open_errors(settings: Settings, workspaces: Sequence[str], limit: int) -> list[LoggedError]:
    """List the newest background errors of workspaces, and of none, that were not repaired."""
    with _opened_stores(settings) as stores:
        read = partial(stores.operations.errors, limit=limit, open_only=True)
        errors = {error.seq: error for name in (None, *workspaces) for error in read(workspace=name)}
    return [errors[seq] for seq in sorted(errors, reverse=True)[:limit]]


def _check_snapshots(context: CheckContext, name: str) -> Iterator[CheckResult]:
    try:
        snapshots = find_snapshots(context.settings, name, open_storage(context.settings))
    except StorageUnreachable as error:
        hint = "none is taken, and none can be put back, until it can be used"
        yield CheckResult(f"{name}: snapshots", "fail", str(error), hint)
        return
    now = datetime.now(UTC)
    hint = f"`reverie -w {name} store snapshot take` takes one; with the stack up, a nightly job does"
    if not snapshots:
        yield CheckResult(
            f"{name}: snapshots", "warn", "there is none yet", hint, lambda: _take_snapshot(context, name)
        )
    elif now - snapshots[0].at > OLDEST_SNAPSHOT:
        says = f"the newest is {(now - snapshots[0].at).days} days old"
        yield CheckResult(f"{name}: snapshots", "warn", says, hint, lambda: _take_snapshot(context, name))
    else:
        yield CheckResult(f"{name}: snapshots", "ok", f"{len(snapshots)}, the newest {snapshots[0].name}")


def _take_snapshot(context: CheckContext, name: str) -> str:
    return f"took {take_snapshot(context.settings, name).name}"
