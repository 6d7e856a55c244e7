"""Let the first, second, … n-th call of an operation fail, until it runs without failure; check its promises each time.

Run below the recorder: `python -m tests.power.failing FOLDER OPERATION …`; `purge/sync` fails only one kind of call,
and `purge/write/300` starts with the 300th. A stopped run has reported what it found, and where it was (stderr).
"""

import ctypes
import errno
import itertools
import json
import os
import shutil
import sys
from collections.abc import Callable, Container
from pathlib import Path
from typing import Any

from config.file_modes import make_umask_private
from pipeline.features.encryption import usecases as encryption
from pipeline.features.snapshots import usecases as snapshots
from pipeline.kernel.errors import ReverieError
from tests.fakes.in_process import run_job
from tests.power import scenarios
from tests.power.promises import Promises, check, digest_due
from tests.power.scenarios import WORKSPACE, Program

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
# HTTP statuses that say that a request was not carried out, and that it may be sent again.
REFUSED = (503, 507)


class Refusal(ReverieError):
    """A request that was refused with a typed answer."""


class CheckedProgram(Program):
    """A program whose refused requests are errors with a type."""

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Send a request; a refusal must be a problem document."""
        headers = {"Authorization": f"Bearer {self.web.token}", "Host": "127.0.0.1:7077"}
        answer = self.client.open(path, method=method, json=body, headers=headers)
        if answer.status_code in REFUSED and answer.mimetype == "application/problem+json":
            raise Refusal(answer.get_json()["detail"])
        assert answer.status_code < 300, (method, path, answer.status_code, answer.get_data()[:500])
        return answer.get_json()


def _digest(program: Program) -> None:
    """Digest as a worker does: a failed item is tried again later."""
    digest_due(program.worker, once=True)


def _run(*jobs: str) -> Callable[[CheckedProgram], None]:
    def act(program: CheckedProgram) -> None:
        for job in jobs:
            outcome = run_job(program.worker, WORKSPACE, job)
            if outcome is not None and outcome.error is not None:
                raise Refusal(outcome.error)

    return act


def _encrypt(program: CheckedProgram) -> None:
    program.stop()
    encryption.choose_key(program.settings.paths, program.root.with_name(f"{program.root.name}.key"))
    with program.doing("encrypt"):
        converted = encryption.encrypt_home(program.settings.paths)
        # No file is damaged.
        assert not converted.left, converted.left


def _restore(program: CheckedProgram) -> None:
    program.stop()
    name = snapshots.list_snapshots(program.settings, WORKSPACE)[0].name
    with program.doing("restore", name=name):
        snapshots.restore_snapshot(program.settings, WORKSPACE, name, lambda _problem: None)


def _purge(program: CheckedProgram) -> None:
    token = next(iter(program.ids))
    with program.doing("erase", token=token, content=program.contents[token]):
        program.call("DELETE", f"/v1/memories/{program.ids[token]}?hard=true")
    _digest(program)


def _spool(program: CheckedProgram) -> None:
    token = program.invent()
    content = program.contents[token]
    with program.doing("write", tokens=[token], contents=[content]):
        body = scenarios.add_client_ids("POST", "/v1/memories", {"content": content})
        if scenarios.spool_write(program.settings, "POST", "/v1/memories", body, WORKSPACE) is None:
            raise Refusal("the request cannot be spooled")


def _snapshot(program: CheckedProgram) -> None:
    program.take_snapshot()


OPERATIONS: dict[str, Callable[[CheckedProgram], None]] = {
    "write": lambda program: _ignore(program.write()),
    "batch": lambda program: _ignore(program.write(5)),
    "fact": lambda program: program.set_fact("gateway/port"),
    "edit": lambda program: program.edit(list(program.ids)[1]),
    "spool": _spool,
    "digest": _digest,
    "segment": _run("segment"),
    "jobs": _run("vectors", "health", "checkpoint"),
    "purge": _purge,
    "snapshot": _snapshot,
    "restore": _restore,
    "encryption": _encrypt,
}


def _ignore(_value: object) -> None:
    """Return nothing."""


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
        program = CheckedProgram(self.home)
        program.write(4)
        program.set_fact("gateway/port")
        program.digest()
        program.run("segment", "vectors")
        program.take_snapshot()
        program.write(2)
        program.stop()
        self.contents, self.ids = program.contents, program.ids
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
        program = CheckedProgram(self.home, numbers=itertools.count(1000))
        program.contents, program.ids = dict(self.contents), dict(self.ids)
        _library().power_fail(kind, number, error, 0)
        problem = None
        try:
            OPERATIONS[self.name](program)
        except ReverieError:
            # It says what failed, and nothing was acknowledged.
            pass
        except Exception as caught:  # noqa: BLE001 - an error without a type is a finding
            problem = f"{type(caught).__name__}: {caught}"
        has_failed = _library().power_failures() > 0
        _library().power_fail(0, 0, 0, 0)
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
