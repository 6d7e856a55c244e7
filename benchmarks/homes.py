"""Homes full of memories, made once and kept: digesting a hundred thousand takes a while."""

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.corpus import fingerprint, memories
from benchmarks.large_homes import ENCODED, build_home
from config.settings import SETTINGS, load_settings
from pipeline.bootstrap.worker import WorkerContainer
from pipeline.index.encoders import usual_model
from tests.support.stack import QUICK, Client, Stack, wait_until

BENCH = Path(__file__).resolve().parents[1] / ".bench"
WORKSPACE = "default"
SEED = 7
BATCH = 500
# How long nothing may happen before digestion counts as stuck.
STUCK_S = 600.0
SETTLED_WITHIN_S = 3600.0
# A million memories without a segment: the first requests wait for reads of the whole store.
ANSWERED_WITHIN_S = 600.0
# Counting the work of a large backlog is work too.
LOOK_EVERY_S = 1.0
TOLD_EVERY_S = 30.0
# While a home is filled nobody asks it anything: the indexes may wait.
FILLING = {"SEGMENT_TAIL_ROWS": "20000", "SEGMENT_INTERVAL_S": "3600"}
SETTLING = {"SEGMENT_INTERVAL_S": "2"}


@dataclass(frozen=True, slots=True)
class Home:
    """A home that holds a corpus, digested and indexed; its memories and their ids stand in one order."""

    folder: Path
    corpus: list[dict[str, Any]]
    ids: list[str]


def bench_folder(folder: Path) -> Path:
    """Make the folder that keeps homes; no tool of this repository looks into it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n", encoding="ascii")
    return folder


def share_models(folder: Path = BENCH) -> Path:
    """Return the folder of compiled encoders that all benchmarks share."""
    models = bench_folder(folder) / "models"
    models.mkdir(exist_ok=True)
    return models


def stack_on(folder: Path, **settings: str) -> Stack:
    """Return the stack of a home with the settings that a person has, not the impatient ones of the fault tests."""
    defaults = {name: str(SETTINGS[name.lower()].default) for name in QUICK}
    model = os.environ.get("REVERIE_EMBEDDING_MODEL", "")
    models = folder.parent / "models"
    models.mkdir(parents=True, exist_ok=True)
    return Stack(folder, models, **defaults | ({"EMBEDDING_MODEL": model} if model else {}) | settings)


def prepare_home(
    size: int,
    bench: Path = BENCH,
    *,
    fresh: bool = False,
    encoded: int = ENCODED,
    tell: Callable[[str], None] = print,
) -> Home:
    """Return the kept home of this size, of this corpus and encoder; make it where there is none.

    Only so many texts are encoded: a larger home is written without being digested.
    """
    corpus = list(memories(size, SEED))
    name = f"home-{size}-s{SEED}-{_encoder()}-{fingerprint(SEED)}"
    folder = bench / (f"{name}-e{encoded}" if size > encoded else name)
    ids_file = folder.with_name(f"{folder.name}.ids.json")
    if fresh or not ids_file.exists():
        ids_file.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        ids = _build_home(folder, corpus, encoded, tell) if size > encoded else _fill_home(folder, corpus, tell)
        ids_file.write_text(json.dumps(ids), encoding="ascii")
    _settle(folder, tell)
    return Home(folder, corpus, json.loads(ids_file.read_text(encoding="ascii")))


@contextmanager
def copy_of(home: Home) -> Iterator[Path]:
    """Lend a copy of a kept home to a run that writes to it."""
    with tempfile.TemporaryDirectory(prefix="run-", dir=home.folder.parent) as place:
        # Beside its own copy of the models, which is the same one.
        (Path(place) / "models").symlink_to(home.folder.parent / "models", target_is_directory=True)
        yield shutil.copytree(home.folder, Path(place) / "home", symlinks=True)


def has_answered(client: Client, *channels: str) -> bool:
    """Tell whether these channels answer a recall now."""
    answer = client.recall("which service reads the key")
    return all(answer["channels"][channel]["state"] == "ok" for channel in channels)


def _encoder() -> str:
    name = usual_model(load_settings())
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _build_home(folder: Path, corpus: list[dict[str, Any]], encoded: int, tell: Callable[[str], None]) -> list[str]:
    tell(f"writing {folder.name}; this happens once")
    folder.mkdir(mode=0o700)
    (folder / "models").symlink_to(share_models(folder.parent), target_is_directory=True)
    return build_home(folder, WORKSPACE, corpus, encoded, tell)


def _fill_home(folder: Path, corpus: list[dict[str, Any]], tell: Callable[[str], None]) -> list[str]:
    tell(f"filling {folder.name}; this happens once")
    ids: list[str] = []
    with stack_on(folder, **FILLING) as stack:
        stack.start("web", "worker", "scheduler")
        client = stack.client(WORKSPACE)
        for start in range(0, len(corpus), BATCH):
            reply = client.call("POST", "/v1/memories/batch", {"items": corpus[start : start + BATCH]})
            if reply.status != 200:
                raise SystemExit(f"a batch was refused: {reply}")
            ids += [result["id"] for result in reply.body["results"]]
        tell(f"  {len(ids)} memories are written; they are digested now")
        _digest(stack, client, tell)
    return ids


def _digest(stack: Stack, client: Client, tell: Callable[[str], None]) -> None:
    began = told = moved = time.monotonic()
    first = left = sum(stack.pending(client).values())
    while left:
        time.sleep(LOOK_EVERY_S)
        now = time.monotonic()
        before, left = left, sum(stack.pending(client).values())
        moved = now if left != before else moved
        if now - moved > STUCK_S:
            raise SystemExit(f"digestion is stuck\n{stack.story(client)}")
        if now - told > TOLD_EVERY_S:
            told = now
            tell(f"  {left} of {first} pieces of work left after {now - began:.0f} s")
    if stack.dead(client):
        raise SystemExit(f"some memories could not be digested\n{stack.story(client)}")


def _settle(folder: Path, tell: Callable[[str], None]) -> None:
    """Bring a home to rest: all digested, one segment without a tail, vectors compacted, of the present formats."""
    with stack_on(folder, **SETTLING) as stack:
        stack.start("web", "worker", "scheduler")
        client = stack.client(WORKSPACE, ANSWERED_WITHIN_S)
        _digest(stack, client, tell)
        wait_until("all channels answer", lambda: has_answered(client, "lexical", "dense"), SETTLED_WITHIN_S)
        client.call("POST", "/v1/jobs/vectors")
        # The server closes a connection that rests as long as the jobs of a large home take.
        client.close()
        # A recall that met a segment of another format has asked for a new one by now.
        worker = WorkerContainer(load_settings({"REVERIE_HOME": str(folder)} | _model()))
        try:
            wait_until(
                "no job is due", lambda: not worker.context(WORKSPACE).list_needed_jobs(tidy=True), SETTLED_WITHIN_S
            )
        finally:
            worker.close()
        client = stack.client(WORKSPACE, ANSWERED_WITHIN_S)
        wait_until("all channels answer", lambda: has_answered(client, "lexical", "dense"), SETTLED_WITHIN_S)
        client.close()


def _model() -> dict[str, str]:
    name = "REVERIE_EMBEDDING_MODEL"
    return {name: os.environ[name]} if os.environ.get(name) else {}
