"""What the default encoder makes of a small workspace whose newest memory is not embedded yet."""

import pytest

from pipeline.index.encoder import OnnxEncoder
from pipeline.kernel.records import Draft, Stage
from pipeline.kernel.records.recall import ChannelState, Query
from pipeline.recall.relevance import RELEVANT
from pipeline.recall.search import search
from tests.fakes.in_process import HeldEncoder, accept_batch, digest_stage, fast_settings, open_web, open_worker

EMBEDDED = ("The database is PostgreSQL 16", "Anna reviews every migration")
# Source kind: our own report that a new memory of a small project is not found before it is embedded.
FRESH = ("We ship on Tuesdays", "Every morning begins with a tested backup")
PATIENT_MS = 10_000


@pytest.fixture(scope="module", params=[0, 1, 2])
def ask(request, compiled_model, tmp_path_factory):
    """Ask a workspace in which so many memories are embedded, the two newest never."""
    settings = fast_settings(tmp_path_factory.mktemp("fresh"))
    encoder = OnnxEncoder.load(compiled_model, threads=1)
    container, worker = open_web(settings, encoder), open_worker(settings)
    worker.encoders = HeldEncoder(encoder)
    database = container.databases.get("fresh", create=True)
    if request.param:
        accept_batch(database, [Draft(text) for text in EMBEDDED[: request.param]])
        errors: list[str] = []
        digest_stage(worker, Stage.EMBED, worker.stages("fresh")[Stage.EMBED], errors.append, "fresh")
        assert errors == []
    accept_batch(database, [Draft(text) for text in FRESH])
    reader = container.contexts.get(container.workspace("fresh"))
    yield lambda text, least=None: search(reader, Query(text, budget_ms=PATIENT_MS, min_relevance=least))
    container.close()
    worker.close()


@pytest.mark.parametrize("question", ["ship", "when do we ship", "When do we ship again?", "which day do we ship?"])
def test_the_newest_is_found_by_a_word_of_it(ask, question):
    answer = ask(question)
    assert answer.hits[0].memory.content == FRESH[0]
    assert answer.channels["lexical"].state is ChannelState.OK


@pytest.mark.parametrize("prompt", ["When do we ship again?", "when do we ship"])
def test_a_prompt_shows_the_newest(ask, prompt):
    assert [hit.memory.content for hit in ask(prompt, RELEVANT).hits] == [FRESH[0]]


@pytest.mark.parametrize(
    "prompt", ["thanks!", "good morning", "Good morning!", "ok, go on", "danke dir", "tell me a joke"]
)
def test_small_talk_shows_nothing_although_it_shares_a_word(ask, prompt):
    assert ask(prompt, RELEVANT).hits == ()
