import shutil

from pipeline.kernel.records import Stage
from pipeline.kernel.store import index_state, meta


def test_a_rebuild_computes_every_index_again(client, container, worker, digested, home):
    ids = {client.write(f"The module-{n}.py of ABC-{n} writes to Redis", session_id="s") for n in range(5)}
    gone = client.write("Forgotten for good: module-9.py")
    digested()
    assert client.delete(f"/v1/memories/{gone}?hard=true").status_code == 200
    digested()
    worker.context("default").rebuild_segment()
    before = client.get("/v1/stats").get_json()
    shutil.rmtree(home.paths.workspace("default").vectors)
    shutil.rmtree(home.paths.workspace("default").lexical)

    answer = client.post("/v1/rebuild")
    assert (answer.status_code, answer.get_json()) == (200, {"queued": 5})
    waiting = dict.fromkeys(Stage, 0) | {Stage.EMBED: 5, Stage.ENTITIES: 5}
    assert client.get("/v1/queue").get_json()["pending"] == waiting
    assert "segment" in worker.context("default").list_needed_jobs()
    digested()
    worker.context("default").rebuild_segment()

    after = client.get("/v1/stats").get_json()
    for counted in ("memories", "graph"):
        assert after[counted] == before[counted]
    assert after["index"]["passages"] == before["index"]["passages"]
    assert after["index"]["segment"] != before["index"]["segment"]
    assert worker.vectors("default").count() == after["index"]["passages"]
    assert set(client.find_ids("Redis module")) == ids


def test_rebuild_notifies_the_worker_and_resets_the_vectors(client, container, worker, digested, home):
    client.write("One memory")
    digested()
    database = container.databases.get("default")
    with database.read() as db:
        epoch = meta.get_int(db, meta.VECTORS_EPOCH)
    assert client.post("/v1/rebuild").get_json() == {"queued": 1}
    with database.read() as db:
        assert index_state.count_expected_passages(db, home.embedding_model) == 0
        assert meta.get(db, meta.SEGMENT_WANTED) == "0"
        assert meta.get_int(db, meta.VECTORS_EPOCH) > epoch


def test_a_workspace_that_does_not_exist_cannot_be_rebuilt(client):
    assert client.post("/v1/rebuild", workspace="nowhere").status_code == 404
