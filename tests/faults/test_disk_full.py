"""A full disk refuses writes and nothing else; what was acknowledged before is there after."""

import contextlib
import os
import resource

import pytest

from pipeline.kernel.errors import StoreFull
from pipeline.kernel.records import Draft
from pipeline.kernel.store import memories, work
from pipeline.kernel.store.database import WriterProfile
from pipeline.kernel.store.sqlite import SqliteDatabase
from pipeline.write.accept import accept
from tests.fakes.in_process import accept_batch
from tests.support.disks import mounted
from tests.support.stack import Stack, wait_until

PROFILE = WriterProfile("FULL", 1000, 5000)
BATCH = 20
# What fills the disk is metadata: nobody has to embed it afterwards.
PADDING = {"note": "and so on and so forth " * 500}


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 96 MB of its own; ended with the test."""
    disk = tmp_path / "disk"
    disk.mkdir()
    with mounted(disk, "size=96m"):
        yield disk


def items(number):
    return [
        {
            "content": f"Batch {number} item {n} mentions src/module_{number}.py",
            "tags": [f"b{number}"],
            "metadata": PADDING,
        }
        for n in range(BATCH)
    ]


def fill(client, acknowledged, start=0, limit=2000):
    """Write batches until one is refused; return the refusal and its number."""
    for number in range(start, start + limit):
        reply = client.call("POST", "/v1/memories/batch", {"items": items(number)})
        if reply.status != 200:
            return reply, number
        acknowledged[number] = [result["id"] for result in reply.body["results"]]
    raise AssertionError("the disk never got full")


def assert_refused_politely(reply):
    assert reply.status == 503, reply
    assert int(reply.headers["Retry-After"]) > 0
    assert reply.headers["Content-Type"] == "application/problem+json"
    assert reply.body["status"] == 503
    assert reply.body["title"] == "Service Unavailable"


def assert_reads_work(client, acknowledged):
    number, ids = next(iter(acknowledged.items()))
    assert client.call("GET", f"/v1/memories/{ids[0]}").status == 200
    assert client.call("GET", "/v1/memories?limit=5").status == 200
    assert client.call("GET", "/v1/queue").status == 200
    assert client.recall(f"src/module_{number}.py", k=BATCH)["results"]


def assert_everything_acknowledged_is_there(stack, client, acknowledged):
    stored = {}
    cursor = ""
    while cursor is not None:
        page = client.call("GET", f"/v1/memories?limit=200{cursor and f'&cursor={cursor}'}").body
        stored |= {item["id"]: item["tags"] for item in page["items"]}
        cursor = page["next_cursor"]
    for number, ids in acknowledged.items():
        assert all(stored[memory_id] == [f"b{number}"] for memory_id in ids)
    sizes = {}
    for tags in stored.values():
        sizes[tags[0]] = sizes.get(tags[0], 0) + 1
    assert {tag: size for tag, size in sizes.items() if size != (1 if tag.startswith("single") else BATCH)} == {}


def test_a_full_disk_under_everything(small_disk, models):
    ballast = small_disk / "ballast"
    with Stack(small_disk / "home", models, SEGMENT_TAIL_ROWS="200") as stack:
        stack.start("web", "worker", "scheduler")
        acknowledged: dict[int, list[str]] = {}
        with contextlib.closing(stack.client()) as client:
            reply = client.call("POST", "/v1/memories/batch", {"items": items(0)})
            acknowledged[0] = [result["id"] for result in reply.body["results"]]
            stack.wait_until_digested(client)
            weigh_down(ballast, small_disk, leave=3 * 2**20)
            refusal, refused = fill(client, acknowledged, start=1)
            assert_refused_politely(refusal)
            assert_reads_work(client, acknowledged)
            # The workers get into the same trouble; nothing becomes a dead letter over it.
            weigh_down(ballast, small_disk, leave=0)
            assert_refused_politely(client.call("POST", "/v1/memories/batch", {"items": items(refused)}))
            assert_refused_politely(fill_single(client))
            assert_reads_work(client, acknowledged)
            new = stack.client("brand-new")
            assert_refused_politely(new.call("POST", "/v1/memories", {"content": "A new workspace."}))
            new.close()
            ballast.unlink()
            again = wait_until("writing works again", lambda: write_batch(client, refused))
            acknowledged[refused] = again
            stack.wait_until_digested(client)
            assert_everything_acknowledged_is_there(stack, client, acknowledged)
            found = client.recall(f"src/module_{refused}.py", k=BATCH)["results"]
            assert any(hit["id"] in again for hit in found)
            assert [stack.running[name].poll() for name in ("web", "worker", "scheduler")] == [None] * 3


def fill_single(client):
    for n in range(5000):
        reply = client.call("POST", "/v1/memories", {"content": f"Single number {n}", "tags": [f"single-{n}"]})
        if reply.status != 201:
            return reply
    raise AssertionError("the disk never got full")


def write_batch(client, number):
    reply = client.call("POST", "/v1/memories/batch", {"items": items(number)})
    assert reply.status in (200, 503)
    return reply.status == 200 and [result["id"] for result in reply.body["results"]]


def weigh_down(ballast, disk, leave):
    """Take up the disk's room but for some bytes."""
    room = os.statvfs(disk)
    with ballast.open("ab") as file:
        size = room.f_bavail * room.f_frsize - leave
        with contextlib.suppress(OSError):
            for _ in range(max(0, size) // 4096):
                file.write(b"\0" * 4096)
                file.flush()


def limit_file_size(process, size):
    hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, hard))


def test_a_front_whose_files_may_not_grow(make_stack):
    stack = make_stack()
    stack.start("web")
    acknowledged: dict[int, list[str]] = {}
    with contextlib.closing(stack.client()) as client:
        acknowledged[0] = write_batch(client, 0)
        limit_file_size(stack.running["web"], 2 * 2**20)
        refusal, refused = fill(client, acknowledged, start=1)
        assert_refused_politely(refusal)
        assert_reads_work(client, acknowledged)
        limit_file_size(stack.running["web"], resource.RLIM_INFINITY)
        acknowledged[refused] = wait_until("writing works again", lambda: write_batch(client, refused))
        assert_everything_acknowledged_is_there(stack, client, acknowledged)


@pytest.fixture
def database(tmp_path):
    database = SqliteDatabase(tmp_path / "events.sqlite", PROFILE, create=True)
    yield database
    database.close()


def allow_pages(database, more):
    with database.write() as db:
        used = db.execute("PRAGMA page_count").fetchone()[0]
        db.execute(f"PRAGMA max_page_count = {used + more}")


def drafts(number):
    return [Draft(f"Batch {number} item {n}", metadata=PADDING) for n in range(BATCH)]


def fill_store(database):
    for number in range(1, 1000):
        try:
            accept_batch(database, drafts(number))
        except StoreFull:
            return number
    raise AssertionError("the store never got full")


def test_full_store_stores_a_batch_completely_or_not_at_all(database):
    accept_batch(database, drafts(0))
    allow_pages(database, 200)
    refused = fill_store(database)
    with database.read() as db:
        assert len(memories.all_seqs(db)) == refused * BATCH
        assert sum(work.count_pending(db).values()) == refused * BATCH * 2
        assert db.execute("SELECT count(*) FROM tail").fetchone() == (refused * BATCH,)
        assert db.execute("SELECT count(*) FROM change").fetchone() == (refused * BATCH,)


def test_a_store_takes_writes_again_once_there_is_room(database):
    accept_batch(database, drafts(0))
    allow_pages(database, 50)
    refused = fill_store(database)
    with pytest.raises(StoreFull) as refusal:
        accept_batch(database, drafts(refused))
    assert refusal.value.retry_after_s > 0
    allow_pages(database, 100_000)
    accept_batch(database, drafts(refused))
    accept(database, Draft("One more for the road."))
    with database.read() as db:
        assert len(memories.all_seqs(db)) == (refused + 1) * BATCH + 1
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
