"""Let the first, second, … n-th call of an operation fail, until it runs without failure; check its promises each time.

Run below the recorder: `python -m tests.power.failing FOLDER OPERATION …`; `purge/sync` fails only one kind of call,
and `purge/write/300` starts with the 300th. A stopped run has reported what it found, and where it was (stderr).
"""

import ctypes
import errno
import json
import os
import shutil
import sys
from collections.abc import Callable, Container
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from config.file_modes import make_umask_private
from pipeline.features.encryption import usecases as encryption
from pipeline.features.export import usecases as export
from pipeline.features.snapshots import usecases as snapshots
from pipeline.kernel.errors import ReverieError
from tests.fakes.homes import SHARED
from tests.fakes.in_process import run_job
from tests.fakes.kept_directories import OLDEST, unpack_directory
from tests.power import scenarios
from tests.power.processes import WORKSPACE, Refusal
from tests.power.promises import Promises, check, digest_due
from tests.power.scenarios import Program

# The kinds of calls, as in recorder.c, and the errors that each fails with.
WRITES, SYNCS, NAMES, OPENS, ALLOCATIONS = range(1, 6)
FAULTS = (
    (WRITES, errno.ENOSPC),
    (WRITES, errno.EIO),
    (SYNCS, errno.EIO),
    (NAMES, errno.ENOSPC),
    (NAMES, errno.EIO),
    (OPENS, errno.EMFILE),
    (ALLOCATIONS, errno.ENOMEM),
)
KINDS = {WRITES: "write", SYNCS: "sync", NAMES: "name", OPENS: "open", ALLOCATIONS: "allocation"}
# Without end, an operation that repeats a call for ever would be tried for ever.
MOST_CALLS = 2000
REPORT_EVERY = 50


def _prepare(program: Program) -> None:
    """Fill a data directory with everything that most operations need."""
    program.write(4)
    program.set_fact("gateway/port")
    program.digest()
    program.run("segment", "vectors")
    program.take_snapshot()
    program.write(2)


def _digest(program: Program) -> None:
    """Digest as a worker does: a failed item is tried again later."""
    digest_due(program.worker, once=True)


def _run(*jobs: str) -> Callable[[Program], None]:
    def act(program: Program) -> None:
        for job in jobs:
            outcome = run_job(program.worker, WORKSPACE, job)
            if outcome is not None and outcome.error is not None:
                raise Refusal(outcome.error)

    return act


def _encrypt(program: Program) -> None:
    program.stop()
    encryption.choose_key(program.settings.paths, program.root.with_name(f"{program.root.name}.key"))
    with program.doing("encrypt"):
        converted = encryption.encrypt_home(program.settings.paths)
        # No file is damaged.
        assert not converted.left, converted.left


def _prepare_encrypted(program: Program) -> None:
    _prepare(program)
    _encrypt(program)


def _decrypt(program: Program) -> None:
    program.stop()
    with program.doing("decrypt"):
        converted = encryption.decrypt_home(program.settings.paths)
        assert not converted.left, converted.left


def _restore(program: Program) -> None:
    program.stop()
    name = snapshots.list_snapshots(program.settings, WORKSPACE)[0].name
    with program.doing("restore", name=name):
        snapshots.restore_snapshot(program.settings, WORKSPACE, name, lambda _problem: None)


def _purge(program: Program) -> None:
    token = next(iter(program.ids))
    with program.doing("erase", token=token, content=program.contents[token]):
        program.call("DELETE", f"/v1/memories/{program.ids[token]}?hard=true")
    _digest(program)


def _prepare_spooled(program: Program) -> None:
    _prepare(program)
    for _ in range(3):
        scenarios.spool_memory(program)


def _deliver(program: Program) -> None:
    try:
        scenarios.deliver(program, 1000)
    except OSError as error:
        # The thread of the delivery records errors of the disk, and tries again.
        raise Refusal(str(error)) from error


def _prepare_lines(program: Program) -> None:
    outside = Program(program.root.parent, "outside")
    outside.write(5)
    export.export_lines(outside.settings.paths, outside.web.databases, _lines(program), [WORKSPACE])
    outside.stop()
    scenarios.note(at="forget")
    _prepare(program)
    program.contents |= outside.contents


def _lines(program: Program) -> Path:
    return program.root.with_name("memories.jsonl")


def _import(program: Program) -> None:
    texts = {token: text for token, text in program.contents.items() if "outside" in token}
    with program.doing("import", tokens=list(texts), contents=list(texts.values())):
        done = export.import_lines(program.web.workspace(WORKSPACE), _lines(program), lambda *_progress: None)
        assert not done.refused, done.refused


def _prepare_oldest(program: Program) -> None:
    program.stop()
    shutil.rmtree(program.root)
    unpack_directory(OLDEST, program.root)
    scenarios.promise_oldest()


def _migrate(program: Program) -> None:
    program.start()
    scenarios.use_migrated(program)


def _prepare_machines(one: Program, two: Program) -> None:
    two.web.sync.join(one.web.sync.invite())
    for program in (one, two):
        program.web.sync.add(SHARED, f"dir:{program.root.with_name('shared')}")
        program.write(3)
        program.digest()
    _sync(one, two)
    _sync(one, two)
    for program in (one, two):
        program.write(2)
        program.edit(next(iter(program.ids)))


def _sync(*programs: Program) -> None:
    for program in programs:
        done = program.exchange_shared()
        if isinstance(done, ReverieError):
            raise done
        assert not done.refused, done.refused


@dataclass(frozen=True, slots=True)
class Operation:
    """What is done, after what preparation, with the data directories of these names."""

    act: Callable[..., object]
    prepare: Callable[..., None] = _prepare
    homes: tuple[str, ...] = ("",)
    # Starting is part of what is done.
    starts: bool = False


OPERATIONS = {
    "write": Operation(lambda program: program.write()),
    "batch": Operation(lambda program: program.write(5)),
    "fact": Operation(lambda program: program.set_fact("gateway/port")),
    "edit": Operation(lambda program: program.edit(list(program.ids)[1])),
    "spool": Operation(scenarios.spool_memory),
    "delivery": Operation(_deliver, _prepare_spooled),
    "digest": Operation(_digest),
    "segment": Operation(_run("segment")),
    "jobs": Operation(_run("vectors", "health", "checkpoint")),
    "purge": Operation(_purge),
    "snapshot": Operation(lambda program: program.take_snapshot()),
    "restore": Operation(_restore),
    "encryption": Operation(_encrypt),
    "decryption": Operation(_decrypt, _prepare_encrypted),
    "import": Operation(_import, _prepare_lines),
    "migration": Operation(_migrate, _prepare_oldest, starts=True),
    "sync": Operation(_sync, _prepare_machines, ("one", "two")),
}


class Trial:
    """An operation on copies of one prepared data directory."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        # Only calls on paths below this folder fail.
        self.home = folder / "watched" / "home"
        self.prepared = folder / f"prepared-{name}"
        self.marks: list[dict[str, Any]] = []
        scenarios.note = self._note
        make_umask_private()
        self.operation = OPERATIONS[name]
        self.programs = [Program(self.home, name) for name in self.operation.homes]
        self.operation.prepare(*self.programs)
        for program in self.programs:
            program.stop()
        self.contents = [dict(program.contents) for program in self.programs]
        self.before = list(self.marks)
        shutil.copytree(self.home, self.prepared)

    def _note(self, **fields: Any) -> None:
        self.marks.append(json.loads(json.dumps(fields)))

    def run(self, kinds: Container[str], first: int = 0) -> tuple[int, int]:
        """Let each call of some kinds fail; return how many failed, and how many promises were broken."""
        failed = broken = 0
        for kind, error in FAULTS:
            for number in range(first, MOST_CALLS if KINDS[kind] in kinds else 0):
                has_failed, problem = self._try(kind, number, error)
                if problem:
                    broken += 1
                    print(f"{self.name}: {KINDS[kind]} {number} {errno.errorcode[error]}: {problem}", flush=True)
                if not has_failed:
                    break
                failed += 1
                if number % REPORT_EVERY == 0:
                    print(f"{self.name}: {KINDS[kind]} {number} {errno.errorcode[error]}", file=sys.stderr, flush=True)
        return failed, broken

    def _try(self, kind: int, number: int, error: int) -> tuple[bool, str | None]:
        shutil.rmtree(self.home, ignore_errors=True)
        shutil.copytree(self.prepared, self.home)
        self.marks[:] = self.before
        for program, contents in zip(self.programs, self.contents, strict=True):
            program.contents = dict(contents)
            if not self.operation.starts:
                program.start()
        _library().power_fail(kind, number, error, 0)
        problem = None
        try:
            # It says what failed, and nothing was acknowledged.
            with suppress(ReverieError):
                self.operation.act(*self.programs)
        except Exception as caught:  # noqa: BLE001 - an error without a type is a finding
            problem = f"{type(caught).__name__}: {caught}"
        has_failed = _library().power_failures() > 0
        _library().power_fail(0, 0, 0, 0)
        for program in self.programs:
            program.stop()
        promises = Promises()
        for mark in self.marks:
            promises.take(mark)
        try:
            check(self.home, promises)
        except Exception as caught:  # noqa: BLE001 - any error of the check is a finding
            problem = f"{problem or ''} afterwards {type(caught).__name__}: {caught}"
        return has_failed, problem


def _library() -> Any:
    return ctypes.CDLL(None)


def main(folder: Path, names: list[str]) -> int:
    """Try operations; return 1 if a promise was broken."""
    all_broken = 0
    for name in names or list(OPERATIONS):
        operation, *kinds = name.split("/")
        trial = Trial(folder / operation, operation)
        failed, broken = trial.run(kinds[:1] or list(KINDS.values()), int(kinds[1]) if kinds[1:] else 0)
        all_broken += broken
        print(f"{name}: {failed} calls failed, {broken} broken", flush=True)
    return 1 if all_broken else 0


if __name__ == "__main__":
    os.environ["HF_HUB_OFFLINE"] = "1"
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
