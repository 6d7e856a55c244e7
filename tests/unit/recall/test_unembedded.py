"""A memory without a vector is judged by its words from the first second, and changes nothing for the others."""

import contextlib

import numpy as np
import pytest
from hypothesis import given, strategies as st

from pipeline.index.dense import DenseIndex
from pipeline.kernel.records import Revision
from pipeline.kernel.records.recall import SEARCHED_CHANNELS, ChannelState
from pipeline.kernel.store import index_state
from pipeline.recall.rank import rank
from pipeline.recall.relevance import IRRELEVANT, RELEVANT, relevance
from pipeline.write import revise
from tests.fakes.evidence import evidence
from tests.fakes.properties import opens_stores
from tests.fakes.recall_workspace import open_recall_workspace

# Source kind: our own report that a new memory of a small project is not found before it is embedded.
NEWEST = "We ship on Tuesdays"
QUESTIONS = ["ship", "when do we ship", "When do we ship again?", "which Tuesdays do we ship on?"]
SMALL_TALK = ["thanks", "good morning", "ok, go on", "good night"]
STATES = ["none", "some", "all", "all but the newest", "edited", "by another model"]
OTHERS = ["The database is PostgreSQL", "Deploys run from the main branch", "Anna reviews the migrations"]


@contextlib.contextmanager
def open_workspace(exact_rows=10_000):
    """Open a workspace whose encoder knows what people say to any assistant."""
    with open_recall_workspace(exact_rows) as workspace:
        encoder = workspace.encoder
        encoder.background = encoder.encode_documents(SMALL_TALK)
        workspace.dense.close()
        workspace.dense = DenseIndex(workspace.table, exact_rows, encoder.background)
        yield workspace


def fill(workspace, state, size):
    """Store so many memories in a state of embedding; return the id of the newest."""
    for number in range(size - 1):
        workspace.write(f"{OTHERS[number % len(OTHERS)]}, note {number}")
        if state == "some" and number == size // 2:
            workspace.embed()
    if state in ("all but the newest", "by another model"):
        workspace.embed()
    newest = workspace.write("Nothing of the kind" if state == "edited" else NEWEST)
    if state in ("all", "edited"):
        workspace.embed()
    if state == "edited":
        revise.edit(workspace.database, newest, Revision(content=NEWEST))
    if state == "by another model":
        with workspace.database.write() as db:
            index_state.serve(db, "hash")
            index_state.note_embedding(db, workspace.seq(newest), "another", 1)
    return newest


def find_relevant(workspace, text):
    return [hit.memory.id for hit in workspace.ask(text, min_relevance=RELEVANT).hits]


@pytest.mark.parametrize("exact_rows", [10_000, 0])
@opens_stores
@given(size=st.integers(1, 50), state=st.sampled_from(STATES), question=st.sampled_from(QUESTIONS))
def test_the_newest_memory_is_found_by_its_words(exact_rows, size, state, question):
    with open_workspace(exact_rows) as workspace:
        newest = fill(workspace, state, size)
        answer = workspace.ask(question)
        assert answer.hits[0].memory.id == newest
        assert find_relevant(workspace, question) == [newest]
        assert {answer.channels[channel].state for channel in SEARCHED_CHANNELS} == {ChannelState.OK}


@opens_stores
@given(size=st.integers(1, 50), state=st.sampled_from(STATES), message=st.sampled_from(SMALL_TALK))
def test_small_talk_finds_nothing_in_any_state(size, state, message):
    with open_workspace() as workspace:
        fill(workspace, state, size)
        workspace.write("Billing runs every morning, go ahead after it")
        assert find_relevant(workspace, message) == []


def test_an_edited_memory_is_judged_by_its_new_words_alone():
    with open_workspace() as workspace:
        edited = fill(workspace, "all", 3)
        revise.edit(workspace.database, edited, Revision(content="Payroll runs in Lisbon"))
        assert find_relevant(workspace, "ship Tuesdays") == []
        assert workspace.find_ids("where does payroll run")[0] == edited
        workspace.embed()
        assert workspace.find_ids("where does payroll run")[0] == edited


def test_a_new_memory_ranks_with_embedded_ones_that_share_as_many_words():
    with open_workspace() as workspace:
        embedded = workspace.write("We ship from Hamburg")
        workspace.embed()
        newest = workspace.write(NEWEST)
        best, second = workspace.ask("when do we ship", min_relevance=RELEVANT).hits
        assert {best.memory.id, second.memory.id} == {embedded, newest}
        assert second.score > 0.7 * best.score
        newest_part, embedded_part = (
            workspace.why("when do we ship", memory_id).signals.parts["lexical"] for memory_id in (newest, embedded)
        )
        assert newest_part > 2 * embedded_part


def test_where_no_memory_has_a_vector_words_rank_as_without_the_channel():
    known = {"seqs": [1, 2, 3], "lexical": [3.0, 2.0, 0.0], "ceiling": 4.0, "vocabulary_coverage": 1.0}
    without = rank(evidence(**known))
    unembedded = rank(evidence(**known, unembedded=[True] * 3))
    assert np.array_equal(without.score, unembedded.score)
    assert np.array_equal(relevance(without), relevance(unembedded))


def test_the_nearer_a_question_is_to_small_talk_the_less_words_alone_prove():
    def judge(background):
        return relevance(
            rank(
                evidence(
                    [1, 2],
                    unembedded=[True, False],
                    information=[4.5, 0.0],
                    background_similarity=background,
                    vocabulary_coverage=1.0,
                )
            )
        ).tolist()

    assert judge(0.3)[0] == judge(0.6)[0] > RELEVANT > judge(0.9)[0]
    assert judge(0.6)[1] < IRRELEVANT
