"""What a data directory promised to its user when the power went, and whether a rebuilt one keeps it."""

import time
from collections.abc import Mapping
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.features.diagnostics import job as health
from pipeline.features.maintenance import usecases as maintenance
from pipeline.features.people.usecases import list_people
from pipeline.index.codes import quantize_rows
from pipeline.index.lexical import LexicalIndex
from pipeline.index.row_arrays import SessionNumbers
from pipeline.index.segment import load_segment
from pipeline.kernel.errors import IndexUnavailable, NotFound
from pipeline.kernel.stage_loop import digest
from pipeline.kernel.store import backup, driver, index_state, memories, meta, work
from pipeline.text.memory_terms import embedded_text
from tests.fakes.encoder import HashEncoder
from tests.fakes.homes import SHARED, Home, exchange_until_still
from tests.fakes.in_process import fast_settings, open_web, open_worker
from tests.power.processes import WORKSPACE
from web.hooks.spool.delivery import SpoolDelivery
from web.hooks.spool.files import list_files
from web.http.app import create_app

ENCODER = HashEncoder()
REPAIRS = ("health", "segment", "vectors")


class BrokenPromise(AssertionError):
    """A data directory lost what it promised, or shows what it must not."""


@dataclass(slots=True)
class Contents:
    """What a data directory contains by its acknowledgements: texts and values by word, and erased texts by word."""

    texts: dict[str, str] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    # Acknowledged as erased, and also finished by a worker.
    erased: dict[str, str] = field(default_factory=dict)
    traceless: dict[str, str] = field(default_factory=dict)
    snapshot: str | None = None
    snapshots: "dict[str, Contents]" = field(default_factory=dict)
    is_encrypted: bool = False
    people: list[str] = field(default_factory=list)

    def restored(self, name: str) -> "Contents":
        """Return the contents after a snapshot is restored."""
        earlier = self.snapshots[name]
        texts = {token: text for token, text in earlier.texts.items() if token not in self.erased}
        return replace(self, texts=texts, facts=dict(earlier.facts))


class Promises:
    """The promises of a recorded program at a moment, by data directory."""

    def __init__(self) -> None:
        self.homes: dict[str, Contents] = {}
        self.begun: dict[int, dict[str, Any]] = {}

    def take(self, mark: dict[str, Any]) -> None:
        """Apply a note of the program."""
        if mark["at"] == "forget":
            self.homes.clear()
        elif mark["at"] == "begin":
            self.begun[mark["op"]] = mark
        elif mark["at"] == "done":
            self.begun.pop(mark["op"], None)
            if "home" in mark:
                self._keep(self.homes.setdefault(mark["home"], Contents()), mark)

    def _keep(self, contents: Contents, mark: dict[str, Any]) -> None:
        contents.people = mark.get("names", contents.people)
        match mark["do"]:
            case "write" | "import":
                contents.texts |= zip(mark["tokens"], mark["contents"], strict=True)
            case "fact":
                contents.facts[mark["key"]] = mark["token"]
            case "edit":
                contents.texts[mark["token"]] = mark["content"]
            case "erase":
                contents.texts.pop(mark["token"])
                contents.erased[mark["token"]] = mark["content"]
            case "finish erasing":
                contents.traceless[mark["token"]] = mark["content"]
            case "snapshot taken":
                contents.snapshot = mark["name"]
                contents.snapshots[mark["name"]] = deepcopy(replace(contents, snapshots={}))
            case "snapshots renewed":
                contents.snapshot = None
            case "restore":
                after = contents.restored(mark["name"])
                contents.texts, contents.facts = after.texts, after.facts
            case "encrypt" | "decrypt":
                contents.is_encrypted = mark["do"] == "encrypt"

    def under_way(self, home: str) -> list[dict[str, Any]]:
        """Return what was asked for and not acknowledged."""
        return [mark for mark in self.begun.values() if mark.get("home") == home]


def check(root: Path, promises: Promises) -> None:
    """Open every data directory below a folder, repair it and check its promises; raise BrokenPromise."""
    for name, contents in promises.homes.items() or {"": Contents()}.items():
        home = root / name if name else root
        DirectoryCheck(home, contents, promises.under_way(name)).run()
    if {"one", "two"} & set(promises.homes):
        _check_sync(root, promises)


def _check_sync(root: Path, promises: Promises) -> None:
    """The machines agree after a few exchanges."""
    homes = [Home(root / name) for name in ("one", "two") if (root / name).is_dir()]
    try:
        for home in homes:
            peers = home.container.stores.peers
            for remote in peers.remotes():
                peers.put_remote(replace(remote, url=f"dir:{root}/shared"))
        known = [home for home in homes if home.container.stores.peers.remotes()]
        if len(known) < 2:
            return
        exchange_until_still(*known)
        texts = [set(home.texts()) for home in known]
        _require(texts[0] == texts[1], f"after an exchange the machines differ by {texts[0] ^ texts[1]}")
        promised = {text for contents in promises.homes.values() for text in contents.texts.values()}
        _require(promised <= texts[0], f"lost in the exchange: {promised - texts[0]}")
        _require(not known[0].sync.status()[0].error, f"{SHARED}: {known[0].sync.status()[0].error}")
    finally:
        for home in homes:
            home.close()


def _require(condition: object, says: str) -> None:
    if not condition:
        raise BrokenPromise(says)


def digest_due(worker: Any, *, once: bool = False) -> list[str]:
    """Do all work that is due, also what a dead process had claimed; return the errors."""
    database, stages, errors = worker.databases.get(WORKSPACE), worker.stages(WORKSPACE), list[str]()
    while True:
        with database.read() as db:
            due = work.list_due_stages(db, time.time())
        for stage in due:
            digest(database, stage, stages[stage], worker.owner, worker.policy, errors.append, time.monotonic() + 60)
        if once or not due:
            return errors


def list_traceable(erased: Mapping[str, str]) -> dict[bytes, str]:
    """Return the bytes of erased memories that no file may contain, with their names: words, vectors and codes."""
    needles: dict[bytes, str] = {}
    for token, content in erased.items():
        vectors = ENCODER.encode_documents([content])
        needles |= {token.encode(): token, vectors.tobytes(): f"the vector of {token}"}
        needles[quantize_rows(vectors)[0].tobytes()] = f"the code of {token}"
    return needles


def find_traces(folder: Path, needles: Mapping[bytes, str]) -> list[str]:
    """Return which of some bytes the files of a folder contain, by name."""
    traces = []
    for file in folder.rglob("*") if needles else ():
        if file.is_file():
            content = file.read_bytes()
            traces += [f"{name} in {file.relative_to(folder)}" for needle, name in needles.items() if needle in content]
    return traces


class DirectoryCheck:
    """The check of one data directory."""

    def __init__(self, home: Path, contents: Contents, under_way: list[dict[str, Any]]) -> None:
        self.home = home
        self.contents = contents
        self.under_way = under_way
        self.paths = fast_settings(home).paths.workspace(WORKSPACE)

    def run(self) -> None:
        """Check the bytes, open, repair, and check everything else."""
        self._check_traces(self.contents.traceless, "right after the crash")
        if self.contents.is_encrypted and not self.under_way:
            readable = find_traces(self.home, {token.encode(): token for token in self.contents.texts})
            _require(not readable, f"readable in an encrypted directory: {readable}")
        self._check_snapshots()
        if self.home.is_dir() and list_files(str(self.home)):
            self._deliver()
        settings = fast_settings(self.home)
        if not self.paths.events.exists() and not self.paths.root.exists():
            _require(not self.contents.texts, f"the store is gone, with {len(self.contents.texts)} memories")
            return
        with closing(open_worker(settings)) as worker:
            try:
                database = worker.databases.get(WORKSPACE)
            except NotFound:
                _require(not self.contents.texts, f"the store is gone, with {len(self.contents.texts)} memories")
                return
            self._check_rows(database)
            self._repair(worker, database)
            self._check_rows(database)
            self._check_indexes(worker, database)
            names = {record.person.name for record in list_people(worker.stores.people)}
            _require(set(self.contents.people) <= names, f"people are gone: {names}")
        # A worker that starts again finishes what was acknowledged as erased.
        self._check_traces({**self.contents.traceless, **self.contents.erased}, "after the repair")

    def _check_traces(self, erased: dict[str, str], when: str) -> None:
        traces = find_traces(self.home, list_traceable(erased)) if self.home.is_dir() else []
        _require(not traces, f"erased, and there {when}: {', '.join(traces)}")

    def _check_snapshots(self) -> None:
        found = {snapshot.name: snapshot for snapshot in backup.snapshots(self.paths.snapshots)}
        for snapshot in found.values():
            with closing(driver.connect(snapshot.file)) as db:
                problems = [row[0] for row in db.execute("PRAGMA integrity_check")]
            _require(problems == ["ok"], f"snapshot {snapshot.name} is damaged: {problems}")
        name = self.contents.snapshot
        if name is not None:
            _require(name in found, f"snapshot {name} is gone; there are {list(found)}")
            stored = backup.read(
                found[name].file, lambda db: [row[0] for row in db.execute("SELECT content FROM memory")]
            )
            promised = self.contents.snapshots[name].texts
            allowed = {**self.contents.erased, **{mark["token"]: "" for mark in self.under_way if "token" in mark}}
            lost = [token for token, text in promised.items() if text not in stored and token not in allowed]
            _require(not lost, f"snapshot {name} lost {lost}")

    def _deliver(self) -> None:
        with closing(open_web(fast_settings(self.home))) as web:
            now = [0.0]
            delivery = SpoolDelivery(web, create_app(web), lambda: now[0])
            for _ in range(3):
                now[0] += 1000
                delivery.deliver_all()
        _require(not list_files(str(self.home)), "spooled requests were not delivered")
        refused = self.home / "spool" / "refused"
        _require(not refused.is_dir() or not any(refused.iterdir()), "a spooled request was refused")

    def _check_rows(self, database: Any) -> None:
        with database.read() as db:
            stored = [row[0] for row in db.execute("SELECT content FROM memory")]
            current = {
                f"{subject}/{attribute}": content
                for subject, attribute, content in db.execute(
                    "SELECT subject, attribute, content FROM memory WHERE subject IS NOT NULL AND valid_to IS NULL "
                    "AND archived_at IS NULL"
                )
            }
        texts = set(stored)
        choices = [self.contents, *map(self._after, self.under_way)]
        problems = [self._find_loss(contents, texts, current) for contents in choices]
        _require(None in problems, str(problems[0]))
        for token in self.contents.erased:
            _require(not any(token in text for text in texts), f"{token} was erased and is in the store")
        for mark in self.under_way:
            if mark["do"] == "write":
                present = [text for text in mark["contents"] if text in texts]
                _require(len(present) in (0, len(mark["contents"])), f"half a batch is stored: {present}")

    def _after(self, mark: dict[str, Any]) -> Contents:
        promises = Promises()
        promises.homes[mark["home"]] = deepcopy(self.contents)
        promises.take({**mark, "at": "done"})
        return promises.homes[mark["home"]]

    @staticmethod
    def _find_loss(contents: Contents, texts: set[str], current: dict[str, str]) -> str | None:
        lost = [token for token, text in contents.texts.items() if text not in texts]
        if lost:
            return f"lost: {lost}"
        wrong = {key: current.get(key) for key, token in contents.facts.items() if token not in str(current.get(key))}
        return f"facts have earlier values: {wrong}, not {contents.facts}" if wrong else None

    def _repair(self, worker: Any, database: Any) -> None:
        """Do what a worker does after a start: free what dead processes claimed, run the jobs, digest."""
        context = worker.context(WORKSPACE)
        reported = {problem.check for problem in health.examine(database, self.paths)}
        maintenance.reap_processes(context, worker.operations)
        repaired: set[str] = set()
        for job in REPAIRS:
            outcome = maintenance.run_job(context, job, worker.owner, lambda: False)
            _require(outcome is not None and outcome.error is None, f"{job} failed: {outcome}")
            repaired |= set(outcome.report.counts) if job == "health" else set()
        silent = repaired - reported - {"vectors"}
        _require(not silent, f"repaired without a report of doctor: {silent}")
        errors = digest_due(worker)
        _require(not errors, f"digestion failed: {errors}")
        left = [problem.says for problem in health.examine(database, self.paths)]
        _require(not left, f"left after the repair: {left}")

    def _check_indexes(self, worker: Any, database: Any) -> None:
        with database.read() as db:
            rows = memories.by_seqs(db, memories.all_seqs(db))
            active = {seq for seq, memory in rows.items() if memory.archived_at is None}
            tail, name = index_state.list_tail_seqs(db), meta.get(db, meta.SEGMENT)
            segment = set(load_segment(self.paths.lexical, name).rows.tolist()) if name else set()
            _require(active <= tail | segment, f"no words of {active - tail - segment}")
            words = LexicalIndex(self.paths.lexical, SessionNumbers())
            for token, text in self.contents.texts.items():
                seqs = [seq for seq in active if rows[seq].content == text]
                found = words.search(db, [token.lower()]).top(10).tolist() if seqs and " " not in token else seqs
                _require(set(seqs) <= set(found), f"{token} is stored and not found by its word")
        table = worker.vectors(WORKSPACE)
        held = table.vectors(sorted(rows)).by_memory()
        _require(set(held) == set(rows), f"vectors of {sorted(held)}, memories {sorted(rows)}")
        for seq, memory in rows.items():
            text = embedded_text(memory)
            expected = ENCODER.encode_documents([passage.text for passage in ENCODER.passages(text)])
            is_same = held[seq].shape == expected.shape and np.allclose(np.sort(held[seq], 0), np.sort(expected, 0))
            _require(is_same, f"memory {seq} has the vector of another text")
        try:
            codes = table.read_codes(None, 10**6)
        except IndexUnavailable as error:
            raise BrokenPromise(f"codes: {error}") from error
        _require(codes is not None and set(codes.seqs.tolist()) == set(rows), "codes and memories differ")
