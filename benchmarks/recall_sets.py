"""Recall times over the stores of public sets, at the largest number of results. Part of `make bench-recall`."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.bare import load_bare_encoder, time_bare_encodings
from benchmarks.figures import Latency, Limit, Report, latency
from benchmarks.homes import share_models, stack_on
from benchmarks.quality import MOST, PATIENCE_S, Store, read_stores, write_store
from benchmarks.wire import Wire, post
from tests.support.stack import Stack

OPENING, REPEATED = "which service reads the key", 20
AIMS = {"p50": 12.0, "p99": 40.0}


def measure_sets(files: Sequence[Path], report: Report) -> None:
    """Ask each question in its own store and then in all others, where its vector is already known."""
    stores = [store for file in files for store in read_stores(file) if store.questions]
    count = sum(len(store.memories) for store in stores)
    report.section(f"recall over {len(stores)} stores of {count // len(stores)} memories on average, k = {MOST}")
    workspaces = {f"store-{number}": store for number, store in enumerate(stores)}
    with tempfile.TemporaryDirectory(prefix="reverie-bench-") as folder:
        home = Path(folder) / "home"
        home.with_name("models").symlink_to(share_models(), target_is_directory=True)
        with stack_on(home, SEGMENT_INTERVAL_S="2") as stack:
            stack.start("web", "worker", "scheduler")
            for workspace, store in workspaces.items():
                _digest(stack, workspace, store)
        texts = [asked.text for store in stores for asked in store.questions]
        encoding = latency(time_bare_encodings(load_bare_encoder(home), texts))
        report.latency("bare: the encoding of a question", encoding)
        with stack_on(home) as stack:
            stack.start("web")
            stack.wait_for_encoder()
            _ask(stack.port, (home / "token").read_text(encoding="ascii").strip(), workspaces, encoding, report)


def _digest(stack: Stack, workspace: str, store: Store) -> None:
    client = stack.client(workspace)
    write_store(client, store)
    stack.wait_until_digested(client, PATIENCE_S)
    stack.wait_for_encoder()
    client.close()


def _ask(port: int, token: str, workspaces: Mapping[str, Store], encoding: Latency, report: Report) -> None:
    with Wire(port) as wire:

        def ask(workspace: str, text: str) -> float:
            answer = wire.ask(post("/v1/recall", {"query": text, "k": MOST}, token, workspace))
            if answer.status != 200:
                raise SystemExit(f"a recall failed: {answer.status} {answer.body[:200]!r}")
            return answer.took_ms

        for workspace in workspaces:
            ask(workspace, OPENING)
        cached = latency([ask(workspace, OPENING) for workspace in workspaces for _ in range(REPEATED)])
        own = [(workspace, asked.text) for workspace, store in workspaces.items() for asked in store.questions]
        new = latency([ask(workspace, text) for workspace, text in own])
        known = latency([ask(other, text) for home, text in own for other in workspaces if other != home])
    report.latency("one question again and again", cached)
    limit = Limit("its encoding and a cached answer", encoding.p50 + cached.p50)
    report.latency("a new question, in its own store", new, limit, **AIMS)
    report.latency("the same in other stores, already encoded", known, Limit("a cached answer", cached.p50), **AIMS)
