"""Programs that use a data directory, each in a process of its own; they note what was promised to their user.

Real stores, indexes and routes; only the models are fakes.
"""

import ctypes
import itertools
import json
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from config import steps
from pipeline.features.encryption import usecases as encryption
from pipeline.features.export import usecases as export
from pipeline.features.indexing import job as indexes
from pipeline.features.people.usecases import add_person
from pipeline.features.snapshots import usecases as snapshots
from pipeline.features.snapshots.people_job import take_people_snapshot
from pipeline.features.sync.exchange import Exchanged
from pipeline.features.sync.usecases import SyncService
from tests.fakes.homes import SHARED, Home, pair
from tests.fakes.in_process import digest_all, fast_settings, flush_notes, open_web, open_worker, run_job
from tests.fakes.kept_directories import OLDEST, unpack_directory
from tests.power.processes import WORKSPACE, Processes, Refusal
from tests.support.sentences import make_sentence
from web.hooks.spool.delivery import SpoolDelivery
from web.hooks.spool.writes import add_client_ids, spool_write
from web.http.app import create_app

# Texts of the data directory that the migration reads.
PEOPLE = ("berta", "carl", "dora")
MIGRATED = ("Run the migrations before the rollout", "The style guide asks for tabs")


def note(**fields: object) -> None:
    """Write a note into the log of the recorder, if this process has one."""
    mark = getattr(ctypes.CDLL(None), "power_mark", None)
    if mark is not None:
        mark(json.dumps(fields).encode())


class Program(Processes):
    """The processes of a data directory, and what a user does with them."""

    def __init__(self, root: Path, name: str = "", numbers: "Iterator[int] | None" = None) -> None:
        self.root = root / name if name else root
        self.name = name
        self.numbers = itertools.count(1) if numbers is None else numbers
        self.rng = random.Random(f"{name} {len(name)}")
        self.ids: dict[str, str] = {}
        self.contents: dict[str, str] = {}
        super().__init__(fast_settings(self.root))

    @contextmanager
    def doing(self, do: str, **fields: object) -> Iterator[None]:
        """Note that an operation starts, and that it was acknowledged."""
        number = next(self.numbers)
        note(op=number, at="begin", do=do, home=self.name, **fields)
        yield
        note(op=number, at="done", do=do, home=self.name, **fields)

    def invent(self) -> str:
        """Return a new word, with a sentence that contains it."""
        token = f"zq{self.name}{len(self.contents):04}xv{self.rng.randrange(36**4):x}k"
        self.contents[token] = make_sentence(self.rng, token, 0.02)
        return token

    def write(self, count: int = 1) -> list[str]:
        """Store one memory, or several in one request; return their words."""
        tokens = [self.invent() for _ in range(count)]
        bodies = [{"content": self.contents[token]} for token in tokens]
        with self.doing("write", tokens=tokens, contents=[self.contents[token] for token in tokens]):
            if count == 1:
                answers = [self.call("POST", "/v1/memories", bodies[0])]
            else:
                answers = self.call("POST", "/v1/memories/batch", {"items": bodies})["results"]
        self.ids.update(zip(tokens, (answer["id"] for answer in answers), strict=True))
        return tokens

    def set_fact(self, key: str) -> None:
        """Set the value of a keyed fact."""
        token = f"v{self.name}{self.rng.randrange(36**6):x}q"
        with self.doing("fact", key=key, token=token):
            self.call("PUT", f"/v1/facts/{key}", {"value": token})

    def edit(self, token: str) -> None:
        """Replace the text of a memory."""
        content = f"{self.contents[token]} It was checked again."
        with self.doing("edit", token=token, content=content):
            self.call("PATCH", f"/v1/memories/{self.ids[token]}", {"content": content})
        self.contents[token] = content

    def erase(self, token: str) -> None:
        """Delete a memory permanently; a worker erases it from all files."""
        fields = {"token": token, "content": self.contents[token]}
        with self.doing("erase", **fields):
            self.call("DELETE", f"/v1/memories/{self.ids[token]}?hard=true")
        with self.doing("finish erasing", **fields):
            self.digest()

    def digest(self) -> None:
        """Have the worker do everything that is due."""
        digest_all(self.worker, WORKSPACE)

    def run(self, *jobs: str) -> None:
        """Run jobs."""
        for job in jobs:
            if job == "snapshot":
                # It deletes an earlier snapshot of the same day.
                note(op=next(self.numbers), at="done", do="snapshots renewed", home=self.name)
            outcome = run_job(self.worker, WORKSPACE, job)
            assert outcome is not None
            assert outcome.error is None, outcome.error

    def take_snapshot(self) -> str:
        """Take a snapshot; return its name."""
        name = snapshots.take_snapshot(self.settings, WORKSPACE).name
        note(op=next(self.numbers), at="done", do="snapshot taken", home=self.name, name=name)
        return name

    def restore(self, name: str) -> None:
        """Replace the store by a snapshot."""
        self.stop()
        with self.doing("restore", name=name):
            snapshots.restore_snapshot(self.settings, WORKSPACE, name, print)
        self.start()


def write_memories(root: Path) -> None:
    """Write memories, batches, facts and edits; digest; publish segments and codes."""
    program = Program(root)
    tokens = [*program.write(), *program.write(), *program.write(4)]
    program.set_fact("gateway/port")
    program.digest()
    program.run("segment", "health")
    program.edit(tokens[2])
    tokens += program.write(3)
    program.set_fact("gateway/port")
    program.digest()
    program.run("segment", "vectors", "checkpoint")
    indexes.compact_vectors(program.worker.vectors(WORKSPACE))
    program.stop()
    program.start()
    program.write()
    program.set_fact("ledger/region")
    program.set_fact("gateway/port")
    program.digest()
    program.run("segment", "dedup", "edges", "decay", "health")
    program.write(5)
    flush_notes(program.web)
    program.stop()


def erase_memories(root: Path) -> None:
    """Erase memories from the store, from indexes and from snapshots."""
    program = Program(root)
    # So many that one of them is a small part of each file.
    tokens = program.write(14)
    program.digest()
    program.run("segment", "vectors")
    program.take_snapshot()
    tokens += program.write(3)
    program.digest()
    program.erase(tokens[1])
    program.write()
    program.run("segment", "vectors", "snapshot")
    program.erase(tokens[15])
    program.stop()
    program.start()
    program.erase(tokens[0])
    program.stop()


def restore_snapshots(root: Path) -> None:
    """Take snapshots and restore them."""
    program = Program(root)
    first = program.write(4)
    program.digest()
    name = program.take_snapshot()
    program.run("segment")
    program.write(3)
    program.digest()
    program.restore(name)
    program.write()
    program.digest()
    program.run("segment", "vectors")
    add_person(program.web.people, "Ann")
    with program.doing("people snapshot"):
        take_people_snapshot(program.settings.paths, datetime.now(UTC))
    program.erase(first[0])
    newest = program.take_snapshot()
    program.write(2)
    program.restore(newest)
    program.stop()


def encrypt_directory(root: Path) -> None:
    """Encrypt a data directory, use it and decrypt it again."""
    key_file = root.with_name(f"{root.name}.key")
    program = Program(root)
    program.write(5)
    program.digest()
    program.run("segment", "vectors")
    program.take_snapshot()
    program.stop()
    encryption.choose_key(program.settings.paths, key_file)
    with program.doing("encrypt"):
        encryption.encrypt_home(program.settings.paths)
    program.start()
    tokens = program.write(2)
    program.digest()
    program.run("segment", "snapshot")
    program.erase(tokens[0])
    program.stop()
    with program.doing("decrypt"):
        encryption.decrypt_home(program.settings.paths)
    program.start()
    program.write()
    program.digest()
    program.stop()


def deliver_spool(root: Path) -> None:
    """Put requests into the spool while the server is down, and deliver them."""
    program = Program(root)
    program.write()
    now = itertools.count(1000, 1000)

    def spool(count: int) -> None:
        for _ in range(count):
            spool_memory(program)

    spool(4)
    deliver(program, next(now))
    spool(3)
    program.write()
    program.stop()
    program.start()
    deliver(program, next(now))
    program.digest()
    spool(2)
    deliver(program, next(now))
    program.stop()


def spool_memory(program: Program) -> None:
    """Put a request into the spool."""
    token = program.invent()
    content = program.contents[token]
    body = add_client_ids("POST", "/v1/memories", {"content": content})
    with program.doing("write", tokens=[token], contents=[content]):
        if spool_write(program.settings, "POST", "/v1/memories", body, WORKSPACE) is None:
            raise Refusal("the request cannot be spooled")


def deliver(program: Program, now: float) -> None:
    """Deliver the spooled requests."""
    SpoolDelivery(program.web, create_app(program.web), lambda: now).deliver_all()


def sync_machines(root: Path) -> None:
    """Exchange memories between two data directories over a folder."""
    one, two = (Home(root / name) for name in ("one", "two"))
    pair(one, two, url=f"dir:{root}/shared")
    # Workers exchange, and they do not sync each commit.
    workers = [open_worker(home.settings) for home in (one, two)]
    exchanges = [SyncService(worker.stores, worker.workspace_settings) for worker in workers]
    rng, numbers = random.Random(3), itertools.count(1)

    def say(home: Home, name: str) -> str:
        token = f"zq{name}{rng.randrange(36**6):x}xv7k"
        content = make_sentence(rng, token, 0.02)
        number = next(numbers)
        note(op=number, at="begin", do="write", home=name, tokens=[token], contents=[content])
        home.say(content)
        note(op=number, at="done", do="write", home=name, tokens=[token], contents=[content])
        return token

    for _ in range(3):
        tokens = {name: [say(home, name) for _ in range(3)] for name, home in (("one", one), ("two", two))}
        number = next(numbers)
        note(op=number, at="begin", do="sync", tokens=tokens)
        for _ in range(2):
            for sync in exchanges:
                assert isinstance(sync.now([SHARED])[SHARED], Exchanged)
        note(op=number, at="done", do="sync", tokens=tokens)
    for opened in (*workers, one, two):
        opened.close()


def import_lines(root: Path) -> None:
    """Import the memories of another data directory."""
    outside = root.with_name(f"{root.name}-outside")
    source = Program(outside)
    texts = [source.contents[token] for token in source.write(8)]
    source.stop()
    stores = open_web(source.settings)
    file = outside / "memories.jsonl"
    export.export_lines(source.settings.paths, stores.databases, file, [WORKSPACE])
    stores.close()
    note(at="forget")
    program = Program(root, numbers=itertools.count(1000))
    program.write()
    tokens = list(source.contents)
    # Its transactions are not one: after an interruption, the command is run again.
    with program.doing("import", tokens=tokens, contents=texts):
        export.import_lines(program.web.workspace(WORKSPACE), file, print)
    program.digest()
    program.run("segment")
    program.write()
    program.stop()
    shutil.rmtree(outside)


def migrate_directory(root: Path) -> None:
    """Open a data directory of an earlier format."""
    scratch = root.with_name(f"{root.name}-old")
    unpack_directory(OLDEST, scratch)
    shutil.copytree(scratch, root, dirs_exist_ok=True)
    shutil.rmtree(scratch)
    promise_oldest()
    program = Program(root, numbers=itertools.count(3))
    use_migrated(program)
    program.write(2)
    program.digest()
    program.run("segment", "vectors")
    program.stop()


def promise_oldest() -> None:
    """Note what a data directory of the oldest format contains, which is certain."""
    fields = {"op": 1, "do": "write", "home": "", "tokens": MIGRATED, "contents": MIGRATED}
    note(at="begin", **fields)
    note(at="settle")
    note(at="done", **fields)
    note(at="done", op=2, do="people", home="", names=PEOPLE)


def use_migrated(program: Program) -> None:
    """Open everything that an earlier format contains."""
    # The journal, which does not sync its commits, imports the earlier files.
    program.worker.operations.workers()
    program.call("GET", "/v1/memories?limit=100")


SCENARIOS: dict[str, Callable[[Path], None]] = {
    "write": write_memories,
    "purge": erase_memories,
    "snapshot": restore_snapshots,
    "encryption": encrypt_directory,
    "spool": deliver_spool,
    "sync": sync_machines,
    "import": import_lines,
    "migration": migrate_directory,
}


if __name__ == "__main__":
    steps.observers.append(lambda step: note(at="step", step=step))
    SCENARIOS[sys.argv[1]](Path(sys.argv[2]))
