"""Digestion stores what a memory states, and recall reads it only for the same text."""

import time

import pytest

from pipeline.features.indexing.stage import EmbedStage
from pipeline.index.vectors import VectorTable
from pipeline.kernel.records import Draft, Revision, Stage
from pipeline.kernel.stage_loop import DigestPolicy, digest, request_no_help
from pipeline.kernel.store.memory_columns import read_statements
from pipeline.text.similarity.statements import Statements, store_statements
from pipeline.write import revise
from pipeline.write.accept import accept
from tests.fakes.encoder import HashEncoder
from tests.fakes.in_process import folder_of, scratch_database

OLD, NEW = "The port of the gateway is now 8123.", "The port of the gateway is 9000."


def embed(database):
    encoder = HashEncoder()
    table = VectorTable(folder_of(database), "hash", encoder.dimension)
    stage = EmbedStage(database, lambda _encoder: table, lambda: encoder)
    policy = DigestPolicy(batch=4, lease_s=60, backoff_s=100)
    digest(database, Stage.EMBED, stage, "me", policy, [].append, time.monotonic() + 60, request_no_help)


def read_row(database):
    with database.read() as db:
        [row] = read_statements(db, [1]).values()
    return row


def values_of(row):
    return [value.value for value in Statements(row.content, row.statements).values]


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


def test_a_memory_that_waits_for_digestion_is_read_from_its_text(database):
    accept(database, Draft(OLD))
    row = read_row(database)
    assert (row.statements, values_of(row)) == (None, ["8123"])


def test_digestion_stores_what_the_text_states_also_after_an_edit(database):
    memory = accept(database, Draft(OLD)).id
    embed(database)
    assert read_row(database).statements == store_statements(OLD)
    revise.edit(database, memory, Revision(content=NEW))
    row = read_row(database)
    assert (row.statements, values_of(row)) == (None, ["9000"])
    embed(database)
    row = read_row(database)
    assert (row.statements, values_of(row)) == (store_statements(NEW), ["9000"])
