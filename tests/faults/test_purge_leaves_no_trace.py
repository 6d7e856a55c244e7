"""A hard delete while everything runs: afterwards no file of the workspace holds the text, in any form."""

import contextlib
import sqlite3
import threading
import time

import pytest

from pipeline.features.indexing.job import rebuild_segment
from pipeline.features.purge.stage import PurgeStage
from pipeline.index.codes import CodesFile
from pipeline.index.encoder import encoder_directory
from pipeline.index.vectors import VectorTable
from pipeline.kernel.errors import StoreBusy
from pipeline.kernel.records import Draft, Stage
from pipeline.kernel.stage_loop import DigestPolicy, digest
from pipeline.kernel.store import work
from pipeline.kernel.store.database import WriterProfile
from pipeline.kernel.store.sqlite import SqliteDatabase
from pipeline.write.accept import accept
from pipeline.write.revise import purge
from tests.faults.conftest import MODEL
from tests.support.stack import Prober, Stack

# The second is what the analysis makes of the first, the third stands in an identifier, the fourth is a name.
DIMENSION = 384
WORDS = ("zubrowkating", "zubrowk", "qwyjibofier", "Xylander")
SECRET = "Xylander was zubrowkating the qwyjibofier_handler in src/qwyjibofier.py with Grace Hopper."
EDITED = "Xylander is still zubrowkating, see src/qwyjibofier_two.py."
FILLER = [f"Release {n} shipped with {n + 2} fixes for the login page." for n in range(120)]


@pytest.fixture(scope="module")
def stack(tmp_path_factory, models):
    with Stack(tmp_path_factory.mktemp("purge") / "home", models, SEGMENT_TAIL_ROWS="50") as stack:
        stack.start("web", "worker", "scheduler")
        yield stack


@pytest.fixture
def client(stack):
    with contextlib.closing(stack.client()) as client:
        yield client


def traces(stack, words=WORDS):
    """List (file, word) for every file of the workspace that holds a word in some case."""
    found = []
    for file in sorted(stack.workspace.rglob("*")):
        # A file may be replaced while we look.
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            text = file.read_bytes().lower()
            found += [(file.name, word) for word in words if word.lower().encode() in text]
    return found


@contextlib.contextmanager
def busy_writing(stack):
    """Write other memories all along."""
    stop = threading.Event()

    def write():
        with contextlib.closing(stack.client()) as client:
            number = 0
            while not stop.wait(0.05):
                number += 1
                client.remember(f"Meanwhile, visitor {number} of {id(stop)} signed the guest book.")

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    yield
    stop.set()
    thread.join(30)


def seq_of(stack, memory_id):
    with contextlib.closing(sqlite3.connect(stack.workspace / "events.sqlite")) as db:
        return db.execute("SELECT seq FROM memory WHERE id = ?", (memory_id,)).fetchone()[0]


def rows_in_every_version(stack, models, seq):
    """Count a memory's vectors in each version that the table can still be read at."""
    import lancedb

    table = lancedb.connect(stack.workspace / "vectors.lance").open_table(encoder_directory(MODEL, models).name)
    counts = {}
    for version in [entry["version"] for entry in table.list_versions()]:
        # A version may be cleaned away while we look.
        with contextlib.suppress(RuntimeError, ValueError):
            table.checkout(version)
            counts[version] = table.count_rows(f"seq = {seq}")
    assert counts
    return counts


def codes_in_every_file(stack, seq):
    """Count a memory's vectors in eight bits, also those that were written anew since, in whatever holds any."""
    files = list((stack.workspace / "vectors.lance").glob("*codes*"))
    assert files
    return sum(int((CodesFile(file, DIMENSION).read(None).seqs == seq).sum()) for file in files)


def test_nothing_is_left_of_a_purged_memory(stack, client, models):
    client.call("POST", "/v1/memories/batch", {"items": [{"content": content} for content in FILLER]})
    memory_id = client.remember(SECRET, tags=["private"])
    assert client.call("PATCH", f"/v1/memories/{memory_id}", {"content": EDITED}).status == 200
    stack.wait_until_digested(client)
    stack.wait_for_encoder()
    seq = seq_of(stack, memory_id)
    assert set(rows_in_every_version(stack, models, seq).values()) & {1}
    assert codes_in_every_file(stack, seq)
    assert {word for _, word in traces(stack)} == set(WORDS)
    assert client.recall("zubrowkating")["results"][0]["id"] == memory_id

    with Prober.probing(stack.client(), "zubrowkating the qwyjibofier"), busy_writing(stack):
        reply = client.call("DELETE", f"/v1/memories/{memory_id}?hard=true")
        assert reply.body["purged"]
        assert_not_found(client, memory_id)
    stack.wait_until_digested(client)

    assert traces(stack) == []
    assert set(rows_in_every_version(stack, models, seq).values()) == {0}
    assert codes_in_every_file(stack, seq) == 0
    assert_not_found(client, memory_id)


def assert_not_found(client, memory_id):
    assert client.call("GET", f"/v1/memories/{memory_id}").status == 404
    listed = client.call("GET", "/v1/memories?limit=200").body["items"]
    assert memory_id not in {item["id"] for item in listed}
    archived = client.call("GET", "/v1/memories?limit=200&archived=true").body["items"]
    assert memory_id not in {item["id"] for item in archived}
    for query in ("zubrowkating", EDITED):
        results = client.recall(query, k=100)["results"]
        assert memory_id not in {result["id"] for result in results}
        assert not any("zubrowk" in result["content"] for result in results)


def test_nothing_is_left_of_a_memory_purged_before_it_was_digested(stack, client):
    stack.kill("worker", with_children=True)
    memory_id = client.remember("The quixotrope was never digested; see quixotrope.ts.")
    assert client.call("DELETE", f"/v1/memories/{memory_id}?hard=true").body["purged"]
    stack.start("worker")
    stack.wait_until_digested(client)
    assert traces(stack, ("quixotrope", "quixotrop")) == []


def test_nothing_is_left_of_an_archived_memory_that_is_purged(stack, client):
    memory_id = client.remember("The flumadiddle was archived first; see flumadiddle.ts.")
    stack.wait_until_digested(client)
    assert client.call("DELETE", f"/v1/memories/{memory_id}").status == 200
    assert traces(stack, ("flumadiddl",))
    assert client.call("DELETE", f"/v1/memories/{memory_id}?hard=true").body["purged"]
    stack.wait_until_digested(client)
    assert traces(stack, ("flumadiddl",)) == []
    assert client.call("GET", f"/v1/memories/{memory_id}").status == 404


def test_many_purges_at_once_leave_nothing(stack, client):
    words = [f"brobdingword{n}x" for n in range(30)]
    items = [{"content": f"{word} was here with {word}.py"} for word in words]
    ids = [r["id"] for r in client.call("POST", "/v1/memories/batch", {"items": items}).body["results"]]
    stack.wait_until_digested(client)
    with busy_writing(stack):
        for memory_id in ids:
            assert client.call("DELETE", f"/v1/memories/{memory_id}?hard=true").status == 200
    stack.wait_until_digested(client)
    assert traces(stack, ("brobdingword",)) == []


def test_nothing_is_left_of_a_memory_that_others_know_of(stack, client):
    """A lesson that was merged, paired, contradicted, shown, anchored, echoed and turned away again."""
    words = ("gallivantr", "mumpsimus", "quomodocunq")
    lesson = "Always run the gallivantrix behind the mumpsimus gateway at night."
    purged = client.remember(lesson, kind="lesson", tags=["quomodocunq"])
    anchor = {"path": "src/gallivantrix.py", "lines": [1, 9]}
    purged_double = client.remember(f"{lesson[:-1]}!", kind="lesson")
    symbol = {"symbol": "gallivantrix"}
    code = client.remember("The gallivantrix starts.", kind="code", details=symbol, anchor=anchor, branch="mumpsimus")
    assert client.call("PUT", "/v1/facts/gallivantrix/gateway", {"value": "mumpsimus"}).status == 200
    stack.wait_until_digested(client)
    known = client.call("GET", f"/v1/memories/{purged}").body
    assert purged_double in {edge["id"] for edge in known["edges"]}
    told = client.call("POST", "/v1/prepare", {"message": lesson}).body
    surface_id = next(one["surface_id"] for one in told["lessons"] if one["id"] == purged)
    note = {"followed": False, "note": "the gallivantrix was busy"}
    assert client.call("POST", f"/v1/lessons/surfaces/{surface_id}", note).status == 200
    line = next(line for line in told["text"].split("\n") if purged[-8:] in line)
    echo = client.call("POST", "/v1/memories", {"content": line, "source": "agent"}).body
    assert (echo["outcome"], echo["id"]) == ("merged", purged)
    # A longer wording that no job merges: the pair waits for a person.
    paired = client.remember("The team runs the gallivantrix at night, always behind the mumpsimus.", kind="lesson")
    denial = client.remember("Never run the gallivantrix behind the mumpsimus gateway at night.", kind="lesson")
    for _ in range(2):
        ambient = {"content": "ok gallivantrix", "source": "ambient"}
        assert client.call("POST", "/v1/memories", ambient).body["outcome"] == "rejected"
    stack.wait_until_digested(client)
    assert {word for _, word in traces(stack, words)} == set(words)

    trail = client.call("GET", "/v1/audit").body["items"]
    edges = client.call("GET", f"/v1/memories/{purged}").body["edges"]
    assert denial in {edge["id"] for edge in edges if edge["kind"] == "contradicts"}
    facts = [fact["id"] for fact in client.call("GET", "/v1/facts?subject=gallivantrix").body["items"]]
    for memory_id in (purged, code, paired, denial, *facts):
        assert client.call("DELETE", f"/v1/memories/{memory_id}?hard=true").status == 200
    stack.wait_until_digested(client)

    assert traces(stack, words) == []
    assert client.call("GET", "/v1/audit").body["items"] == trail
    assert client.call("GET", f"/v1/memories/{purged_double}").status == 404


def test_a_purged_double_is_scrubbed_from_the_memory_that_it_went_into(stack, client):
    kept = client.remember("The nightly report goes to the whole team by mail.")
    gone = client.remember("The nightly report goes to the whole team, by mail!", tags=["tatterdemal"])
    stack.wait_until_digested(client)
    survivor = client.call("GET", f"/v1/memories/{kept}").body
    assert "tatterdemal" in survivor["tags"]
    assert len(survivor["history"]) == 1
    assert client.call("DELETE", f"/v1/memories/{gone}?hard=true").body["purged"]
    stack.wait_until_digested(client)
    survivor = client.call("GET", f"/v1/memories/{kept}").body
    assert (survivor["tags"], survivor["history"], survivor["merge_count"]) == ([], [], 0)
    assert traces(stack, ("tatterdemal", "team, by mail!")) == []
    assert client.recall("nightly report")["results"][0]["id"] == kept


def test_a_purge_is_not_done_while_a_reader_keeps_the_log(tmp_path):
    """A reader of the old state keeps the text in the write-ahead log; the purge waits for it."""
    profile = WriterProfile("NORMAL", 1000, 50)
    folder = tmp_path / "workspace"
    database = SqliteDatabase(folder / "events.sqlite", profile, create=True)
    receipt = accept(database, Draft("The snollygoster signed."))
    purge(database, receipt.id)
    table = VectorTable(folder / "vectors.lance", "hash", 64)
    stage = PurgeStage(database, lambda: table, lambda: rebuild_segment(database, folder / "lexical"))
    policy = DigestPolicy(batch=16, lease_s=60, backoff_s=0.01)

    def turn():
        digest(database, Stage.PURGE, stage, "one", policy, print, time.monotonic() + 30)

    def pending():
        with database.read() as db:
            return work.count_pending(db)[Stage.PURGE]

    with contextlib.closing(sqlite3.connect(database.file, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM memory").fetchone()
        for _ in range(2 * work.MAX_ATTEMPTS):
            with pytest.raises(StoreBusy):
                turn()
            assert pending() == 1
    turn()
    assert pending() == 0
    assert not any(b"snollygoster" in file.read_bytes() for file in folder.rglob("*") if file.is_file())
    database.close()
