"""Healing: whatever the vector index lost is computed again, and only that."""

import os
import shutil

import pytest

from pipeline.kernel.records import Stage
from pipeline.kernel.store import runs, work
from pipeline.recall.feedback import ask_for_vectors
from tests.fakes.in_process import digest_all

EMBED = Stage.EMBED


@pytest.fixture
def embedded(client, digested):
    ids = [client.write(f"Memory number {number}") for number in range(3)]
    digested()
    return ids


def heal(worker):
    count = worker.context("default").repair_vectors()
    with worker.databases.get("default").read() as db:
        assert work.count_pending(db)[EMBED] == count
    return count


def test_complete_vector_index_is_not_repaired(embedded, worker):
    assert heal(worker) == 0


def test_lost_rows_are_queued_again(embedded, worker):
    table = worker.vectors("default")
    with table.exclusive():
        table.remove([2])
    assert heal(worker) == 1
    digest_all(worker)
    assert table.seqs() == {1, 2, 3}


def test_deleted_vector_index_is_rebuilt(embedded, worker, client):
    shutil.rmtree(worker.settings.paths.workspace("default").vectors)
    assert heal(worker) == 3
    digest_all(worker)
    assert heal(worker) == 0
    assert client.recall("memory number 1")["channels"]["dense"]["state"] == "ok"


def test_the_repair_is_asked_for_once(embedded, worker):
    database = worker.databases.get("default")
    assert ask_for_vectors(database)
    assert not ask_for_vectors(database)
    with database.read() as db:
        assert runs.list_requested(db) == ["vectors"]


def test_vector_repair_does_not_request_itself_again(embedded, worker, client):
    shutil.rmtree(worker.settings.paths.workspace("default").vectors)
    heal(worker)
    client.recall("memory number 1")
    with worker.databases.get("default").read() as db:
        assert runs.list_requested(db) == []


def test_workspace_without_vectors_gets_no_vector_folder(client, worker):
    client.write("Nothing of this was embedded yet")
    worker.context("default").repair_vectors()
    assert not worker.settings.paths.workspace("default").vectors.exists()


def test_broken_vector_index_is_reported_and_rebuilt(embedded, worker, client):
    for file in worker.settings.paths.workspace("default").vectors.rglob("*.manifest"):
        file.write_bytes(b"\x00" * 10)
    assert heal(worker) == 3
    digest_all(worker)
    assert heal(worker) == 0
    assert "will be rebuilt" in client.get("/v1/errors").get_data(as_text=True)
    assert client.find_ids("memory number 1")[0] == embedded[1]


@pytest.mark.parametrize("lost", ["deleted", "cut"])
def test_lost_codes_are_made_again_without_embedding_anything(embedded, worker, client, lost):
    [file] = worker.settings.paths.workspace("default").vectors.glob("*.codes")
    whole = file.stat().st_size
    if lost == "cut":
        os.truncate(file, whole - 1)
    else:
        file.unlink()
    assert heal(worker) == 0
    assert file.stat().st_size == whole
    assert client.find_ids("memory number 1")[0] == embedded[1]
