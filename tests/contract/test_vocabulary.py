"""Messages that use another word than the memory that answers them, before and after names are mined."""

import json
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pipeline.features.bridges.job import mine_bridges
from pipeline.index.encoder import OnnxEncoder
from pipeline.kernel.job_runs import JobRun
from pipeline.kernel.records import Draft, Stage
from pipeline.kernel.records.recall import Query
from pipeline.recall.relevance import RELEVANT
from pipeline.recall.search import search
from tests.fakes.in_process import HeldEncoder, accept_batch, digest_stage, fast_settings, open_web, open_worker
from tests.fakes.workspace import load_labelled, open_labelled_workspace

LABELLED = json.loads((Path(__file__).parents[1] / "data" / "vocabulary.json").read_text(encoding="utf-8"))
ENGLISH, MIXED = "ferry", "winery"
PATIENT_MS = 10_000


@contextmanager
def open_project(model, folder, name):
    """Yield functions that recall from a project's memories, and that mine their names."""
    encoder, settings = OnnxEncoder.load(model, threads=1), fast_settings(folder)
    container, worker = open_web(settings, encoder), open_worker(settings)
    worker.encoders = HeldEncoder(encoder)
    database = container.databases.get("labelled", create=True)
    memories = [memory for memory in LABELLED["memories"] if memory["workspace"] == name]
    receipts = accept_batch(database, [Draft(memory["content"]) for memory in memories])
    errors: list[str] = []
    digest_stage(worker, Stage.EMBED, worker.stages("labelled")[Stage.EMBED], errors.append, "labelled")
    assert errors == []
    keys = {receipt.id: memory["id"] for receipt, memory in zip(receipts, memories, strict=True)}
    reader = container.contexts.get(container.workspace("labelled"))

    def recall(text):
        hits = search(reader, Query(text, budget_ms=PATIENT_MS, min_relevance=0.0)).hits
        return {keys[hit.memory.id]: hit.relevance for hit in hits}

    yield recall, lambda: mine_bridges(JobRun(database, datetime.now(UTC)))
    container.close()
    worker.close()


def judge(recall, name, part):
    """Return the share of messages whose memory is relevant, and of others for which any memory is."""
    found, disturbed = [], []
    for message in LABELLED["queries"]:
        if (message["workspace"], message["part"]) == (name, part):
            relevances = recall(message["text"])
            if message["memory"] is None:
                disturbed.append(max(relevances.values()) >= RELEVANT)
            else:
                found.append(relevances.get(message["memory"], 0.0) >= RELEVANT)
    return sum(found) / len(found), sum(disturbed) / len(disturbed)


def test_english_names_are_bridged(compiled_model, tmp_path):
    with open_project(compiled_model, tmp_path, ENGLISH) as (recall, mine):
        before = judge(recall, ENGLISH, "test")
        mine()
        after = judge(recall, ENGLISH, "test")
        print(f"found {before[0]:.2f} → {after[0]:.2f}, disturbed {before[1]:.2f} → {after[1]:.2f}")
        assert after[0] >= max(0.78, before[0])
        assert after[1] <= before[1] + 0.07
        assert recall("How do we deploy to k8s?")["v001"] >= RELEVANT


def test_names_in_several_languages_are_bridged(multilingual_model, tmp_path):
    with open_project(multilingual_model, tmp_path, MIXED) as (recall, mine):
        before = judge(recall, MIXED, "test")
        mine()
        after = judge(recall, MIXED, "test")
        print(f"found {before[0]:.2f} → {after[0]:.2f}, disturbed {before[1]:.2f} → {after[1]:.2f}")
        assert after[0] >= before[0] + 0.08
        assert after[1] <= before[1]


@pytest.fixture(scope="module")
def opened(compiled_model, tmp_path_factory):
    """How many messages of the labelled workspace find something, before and after, by part and by relevance."""
    encoder, messages = OnnxEncoder.load(compiled_model, threads=1), load_labelled("messages.json")

    def count_opened(workspace):
        found = (message for message in messages if workspace.ask(message["text"], min_relevance=RELEVANT).hits)
        return Counter((message["part"], message["relevant"]) for message in found)

    with open_labelled_workspace(fast_settings(tmp_path_factory.mktemp("labelled")), encoder) as workspace:
        before = count_opened(workspace)
        mine_bridges(JobRun(workspace.database, datetime.now(UTC)))
        return before, count_opened(workspace)


@pytest.mark.parametrize("part", ["calibration", "test"])
def test_no_more_messages_are_disturbed(opened, part):
    """In the labelled workspace, which was written for the relevance of memories."""
    before, after = opened
    assert after[part, True] >= before[part, True] > 0
    assert after[part, False] <= before[part, False]
