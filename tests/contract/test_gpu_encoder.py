"""Embedding with sentence-transformers: on the CPU everywhere, on a GPU where there is one."""

import numpy as np
import pytest

from config.settings import Settings
from pipeline.enums import Device
from pipeline.index.encoder import ENGLISH, OnnxEncoder
from pipeline.index.gpu_encoder import TOLERANCE, GpuEncoders, list_gpus
from pipeline.recall.search import search
from pipeline.records import Draft, Stage
from pipeline.records.recall import ChannelState, Query
from pipeline.services.bulk_embedding import use_encoders
from pipeline.store import memories, work
from tests.fakes.in_process import HeldEncoder, accept_batch, digest_stage, open_web, open_worker

TEXTS = [
    "The login service times out after thirty seconds.",
    "Anna prefers tabs over spaces in the build scripts.",
    "Der Dienst für Anmeldungen läuft ab. 🙂 登录",
    "[SEP] https://example.org/a?b=c#d \t\n",
    "We moved the job queue from Redis to SQLite because nobody wanted to run another server. " * 3,
    "line of a log, which is longer than the window of the model\n" * 60,
]
QUESTION = "Which person indents with tabulators?"


@pytest.fixture(scope="module")
def compiled(compiled_model):
    return OnnxEncoder.load(compiled_model, threads=1)


@pytest.fixture(scope="module")
def on_cpu():
    return GpuEncoders(Device.CPU)


def assert_same_vectors(encoder, compiled):
    vectors = encoder.encode_documents(TEXTS)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert (vectors * compiled.encode_documents(TEXTS)).sum(axis=1).min() >= TOLERANCE


def test_vectors_on_the_cpu_are_within_the_tolerance(compiled, on_cpu):
    assert_same_vectors(on_cpu.get(compiled), compiled)


@pytest.mark.skipif(not list_gpus(), reason="torch finds no GPU")
def test_vectors_on_a_gpu_are_within_the_tolerance(compiled):
    assert_same_vectors(GpuEncoders(list_gpus()[0]).get(compiled), compiled)


@pytest.fixture
def opened(compiled, tmp_path):
    """A worker and a web server with the compiled encoder, over one data directory with memories."""
    settings = Settings(home=tmp_path, embedding_model=ENGLISH)
    worker, container = open_worker(settings), open_web(settings, compiled)
    worker.encoders = HeldEncoder(compiled)
    accept_batch(worker.databases.get("default", create=True), [Draft(text) for text in TEXTS])
    yield worker, container
    container.close()
    worker.close()


def test_memories_embedded_with_it_are_found_by_meaning(opened, compiled, on_cpu):
    worker, container = opened
    stage = use_encoders(worker.stages("default")[Stage.EMBED], on_cpu)
    digest_stage(worker, Stage.EMBED, stage, pytest.fail)
    table = worker.vectors("default")
    assert table.model == ENGLISH
    with worker.databases.get("default").read() as db:
        stored = {memory.content: memory.seq for memory in memories.by_seqs(db, sorted(table.seqs())).values()}
    assert stored.keys() == {text.strip() for text in TEXTS}
    vectors = table.vectors([stored[TEXTS[0]]]).by_memory()[stored[TEXTS[0]]]
    # Those of sentence-transformers, not the compiled encoder's.
    np.testing.assert_allclose(vectors, on_cpu.get(compiled).encode_documents(TEXTS[:1]), atol=1e-5)
    answer = search(
        container.contexts.get(container.workspace("default")), Query(QUESTION, budget_ms=10_000, min_relevance=0)
    )
    assert answer.channels["dense"].state is ChannelState.OK
    assert answer.hits[0].memory.content == TEXTS[1]
    with worker.databases.get("default").read() as db:
        assert work.count_pending(db)[Stage.EMBED] == 0
