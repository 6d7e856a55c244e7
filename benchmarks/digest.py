"""Measure digestion through the real queue and workers beside the bare encoder, and where its CPU time goes.

Run by `make bench-digest`. Starts the stack of the Procfile on a home of its own and stops it; then digests the same
memories once more in this process, the stages in turns, with a clock on each part.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from benchmarks.corpus import memories
from benchmarks.figures import Aim, Limit, Report
from benchmarks.homes import share_models
from benchmarks.templated_notes import templated_notes
from benchmarks.write import BATCH, ROOT, WARM_UP, Connection, time_writes, wait_until_digested, write_batches
from config.settings import Settings, load_settings
from demo.stack import HOST, Stack, choose_port, honcho_command, stack_environment
from pipeline.bootstrap.worker import WorkerContainer
from pipeline.features.dedup import stage as dedup
from pipeline.features.entities import stage as entities
from pipeline.features.indexing import screen_stage as screen
from pipeline.features.indexing.usecases import compile_model
from pipeline.index import sentence_classifier
from pipeline.index.dense import DenseIndex
from pipeline.index.encoder import OnnxEncoder, encoder_directory
from pipeline.index.encoders import usual_model
from pipeline.index.table_storage import preload_vectors
from pipeline.index.vectors import VectorTable
from pipeline.kernel.records import Draft, Kind, Source, Stage
from pipeline.kernel.stage_loop import digest
from pipeline.kernel.store.sqlite import SqliteDatabase
from tests.fakes.in_process import accept_batch
from workers.queue import NICENESS

WORKSPACE = "backlog"
CORPORA = {"generated": memories, "templates": templated_notes}
ROUNDS = 3
RATIO = Aim("ratio", 0.6, at_least=True)
# Who runs a stage decides what each costs: embedding first, as what it leaves is what the others read.
STAGES = (Stage.EMBED, Stage.SCREEN, Stage.ENTITIES, Stage.DEDUP)
PARTS: dict[str, tuple[tuple[Any, str], ...]] = {
    "tokenize": ((OnnxEncoder, "passages"), (OnnxEncoder, "_tokenize")),
    "encode": ((OnnxEncoder, "_run"),),
    "spaCy": ((entities.SpacyTagger, "tag"),),
    "rules and corrections of names": ((entities, "extract_batch"),),
    "screen: split": ((screen, "list_sentences"),),
    "screen: compare with examples": ((sentence_classifier, "_similarities"),),
    "dedup: search": ((DenseIndex, "find_near"), (DenseIndex, "refresh")),
    "dedup: classify": ((dedup, "relate_pair"),),
    "LanceDB writes": ((VectorTable, "replace"),),
    "LanceDB reads": ((VectorTable, "_read"),),
    "SQLite writes": ((SqliteDatabase, "write"),),
    "SQLite reads": ((SqliteDatabase, "read"),),
}
OTHERS = "everything else of the stages"


class Rate(NamedTuple):
    """How many a second, and the CPU seconds of a thousand."""

    a_second: float
    cpu_s: float

    def __str__(self) -> str:
        """Say both."""
        return f"{self.a_second:7.1f} /s   {self.cpu_s:6.2f} CPU s a 1,000"


class PartClock:
    """CPU time of this process by part; what a part calls is counted where it belongs."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._running = [OTHERS]
        self._since = time.process_time()

    @contextmanager
    def on(self, part: str) -> Iterator[None]:
        """Count for a part what is used until the end of the block."""
        self._switch()
        self._running.append(part)
        try:
            yield
        finally:
            self._switch()
            self._running.pop()

    def _switch(self) -> None:
        now = time.process_time()
        part = self._running[-1]
        self.seconds[part] = self.seconds.get(part, 0.0) + now - self._since
        self._since = now

    def stop(self) -> dict[str, float]:
        """Return what was counted."""
        self._switch()
        return self.seconds


def digest_on_the_stack(home: Path, bodies: Sequence[dict[str, Any]]) -> tuple[Rate, float]:
    """Write a backlog to a running stack; return the rate of its digestion and the memories a second written."""
    port = choose_port(None)
    with Stack(honcho_command(home), ROOT, home, stack_environment(os.environ, home, port)) as stack:
        stack.wait_until_healthy(f"http://{HOST}:{port}")
        token = (home / "token").read_text().strip()
        warm = Connection(port, token, "warm")
        time_writes(warm, list(memories(WARM_UP, seed=1)))
        wait_until_digested(warm)
        backlog = Connection(port, token, WORKSPACE)
        before, began = _worker_seconds(), time.perf_counter()
        written = write_batches(backlog, bodies)
        wait_until_digested(backlog)
        taken, used = time.perf_counter() - began, _worker_seconds() - before
    return Rate(len(bodies) / taken, used * 1000 / len(bodies)), len(bodies) / written


def _worker_seconds() -> float:
    """Return the CPU seconds that the workers under this process have used."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        if any("huey_consumer" in word for word in process.cmdline()):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def encode_bare(settings: Settings, texts: Sequence[str], cores: int) -> Rate:
    """Encode texts on all cores, a thread and a session a core, each text alone; return the best of some rounds.

    What else runs here gets as much before it as it gets before workers: they all give way.
    """
    directory = encoder_directory(usual_model(settings), settings.paths.models)
    encoders = [OnnxEncoder.load(directory, threads=1) for _ in range(cores)]
    rates = []
    with ThreadPoolExecutor(cores, initializer=os.nice, initargs=(NICENESS,)) as pool:
        for _ in range(ROUNDS):
            began, used = time.perf_counter(), time.process_time()
            shares = [texts[number::cores] for number in range(cores)]
            list(pool.map(lambda pair: pair[0].encode_documents(pair[1]), zip(encoders, shares, strict=True)))
            rates.append(
                Rate(len(texts) / (time.perf_counter() - began), (time.process_time() - used) * 1000 / len(texts))
            )
    return max(rates)


def digest_by_part(settings: Settings, bodies: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Digest memories in this process, the stages in turns; return the CPU seconds a thousand by part."""
    container = WorkerContainer(settings)
    database = container.databases.get("by-part", create=True)
    drafts = [
        Draft(body["content"], Kind(body["kind"]), source=Source(body["source"]), session_id=body["session_id"])
        for body in bodies
    ]
    accept_batch(database, drafts)
    stages = container.stages("by-part")
    preload_vectors()
    for stage in STAGES:
        stages[stage].load()
    clock = PartClock()
    for part, places in PARTS.items():
        for owner, name in places:
            setattr(owner, name, _on_clock(getattr(owner, name), part, clock))

    def digest_batch(stage: Stage) -> int:
        until = time.monotonic()
        return digest(database, stage, stages[stage], container.owner, container.policy, _refuse, until).claimed

    # In turns, as workers do: screening uses vectors of the last embedded texts.
    while sum([digest_batch(stage) for stage in STAGES]):
        pass
    used = clock.stop()
    container.close()
    return {part: seconds * 1000 / len(bodies) for part, seconds in used.items()}


def _on_clock(function: Callable[..., Any], part: str, clock: PartClock) -> Callable[..., Any]:
    if function in (SqliteDatabase.read, SqliteDatabase.write):

        @contextmanager
        def transaction(*arguments: Any) -> Iterator[Any]:
            with clock.on(part), function(*arguments) as db:
                yield db

        return transaction

    @wraps(function)
    def counted(*arguments: Any) -> Any:
        with clock.on(part):
            return function(*arguments)

    return counted


def _refuse(error: str) -> None:
    raise SystemExit(error)


def main() -> None:
    """Measure the bare limit, the stack and the parts, and print them beside each other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="memories of the backlog")
    parser.add_argument("--corpus", choices=list(CORPORA), default="generated", help="texts of the backlog")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)), help="threads of the bare encoder")
    arguments = parser.parse_args()
    bodies = list(CORPORA[arguments.corpus](arguments.count, seed=2))
    texts = [body["content"] for body in bodies]
    with tempfile.TemporaryDirectory(prefix="reverie-bench-") as folder:
        home = Path(folder)
        (home / "models").symlink_to(share_models(), target_is_directory=True)
        settings = load_settings({"REVERIE_HOME": str(home)})
        compile_model(settings)
        before = encode_bare(settings, texts, arguments.cores)
        stack, written = digest_on_the_stack(home, bodies)
        bare = max(before, encode_bare(settings, texts, arguments.cores))
        parts = digest_by_part(settings, bodies)
    words = statistics.fmean(len(text.split()) for text in texts)
    report, limit = Report(), Limit("the bare encoder", bare.a_second)
    report.section(f"{len(bodies)} memories ({arguments.corpus}) of {words:.0f} words")
    report.row(f"written in batches of {BATCH}", f"{written:.0f} /s")
    report.row(f"bare encoder, {arguments.cores} threads as nice as workers", str(bare))
    ratio, rate = limit.ratio(stack.a_second), stack.a_second
    report.row("digestion (embed, entities, dedup)", str(stack), (RATIO, ratio), against=(limit, rate))
    report.section("CPU seconds of a thousand memories by part, the stages in turns in one process")
    for part, seconds in sorted(parts.items(), key=lambda item: -item[1]):
        report.row(part, f"{seconds:7.3f}")
    total, encoding = sum(parts.values()), Limit("the bare encoder", bare.cpu_s)
    report.row("all", f"{total:7.3f}", against=(encoding, total))
    report.row("the workers' queue, models, contention", f"{stack.cpu_s - total:7.3f}")


if __name__ == "__main__":
    main()
