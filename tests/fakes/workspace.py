"""The labelled workspace of tests/data in a real store, recalled with a real encoder."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from config.settings import Settings
from pipeline.index.encoder import Encoder
from pipeline.kernel.records import Draft, Kind, Stage
from pipeline.kernel.records.recall import Answer, Query
from pipeline.recall.search import search
from tests.fakes.in_process import HeldEncoder, accept_batch, digest_stage, open_web, open_worker

DATA = Path(__file__).resolve().parents[1] / "data"
PATIENT_MS = 10_000


def load_labelled(name: str) -> list[dict[str, Any]]:
    """Return the entries of a data set: `memories` of the workspace, `questions` or `messages`."""
    (entries,) = json.loads((DATA / name).read_text(encoding="utf-8")).values()
    return entries


class LabelledWorkspace:
    """Ask the workspace; memories are known by the keys of the data set."""

    def __init__(self, reader: Any, keys: dict[str, str]) -> None:
        self._reader = reader
        self._keys = keys
        self.database = reader.database

    def ask(self, text: str, k: int = 8, min_relevance: float | None = None) -> Answer:
        return search(self._reader, Query(text, k=k, budget_ms=PATIENT_MS, min_relevance=min_relevance))

    def find_ids(self, text: str, k: int) -> list[str]:
        return [self._keys[hit.memory.id] for hit in self.ask(text, k).hits]


@contextmanager
def open_labelled_workspace(settings: Settings, encoder: Encoder) -> Iterator[LabelledWorkspace]:
    memories = load_labelled("workspace.json")
    container, worker = open_web(settings, encoder), open_worker(settings)
    worker.encoders = HeldEncoder(encoder)
    try:
        database = container.databases.get("labelled", create=True)
        drafts = [Draft(content=m["content"], kind=Kind(m["kind"]), session_id=m["session"]) for m in memories]
        receipts = accept_batch(database, drafts)
        errors: list[str] = []
        digest_stage(worker, Stage.EMBED, worker.stages("labelled")[Stage.EMBED], errors.append, "labelled")
        assert errors == []
        keys = {receipt.id: memory["key"] for receipt, memory in zip(receipts, memories, strict=True)}
        yield LabelledWorkspace(container.contexts.get(container.workspace("labelled")), keys)
    finally:
        container.close()
        worker.close()
