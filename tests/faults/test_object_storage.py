"""Indexes on object storage that is late, refuses, breaks off or comes back: recall answers, and nothing is lost."""

import shutil
import threading
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from pipeline.index import lexical
from pipeline.index.storage import GRACE, SharedSegments, open_storage
from pipeline.kernel.errors import StorageUnreachable
from pipeline.kernel.records import Stage
from pipeline.kernel.store import meta, work
from tests.fakes.in_process import digest_all, digest_stage
from tests.fakes.team import Machine
from tests.support.stack import wait_until

BUCKET = "indexes"
TEXTS = ("The billing service listens on port 8123", "Deploys of the shop run on Fridays", "Zebras sleep in the attic")


@pytest.fixture(scope="module")
def bucket(s3):
    s3.make_bucket(BUCKET)
    return s3


@pytest.fixture
def open_machine(tmp_path, gate, store_url):
    """Open machines over the same store and object storage, each with an empty home."""
    opened, vectors = [], f"s3://{BUCKET}/{uuid.uuid4().hex}"

    def open_machine():
        opened.append(Machine(tmp_path / f"home-{len(opened)}", store_url, vectors))
        return opened[-1]

    yield open_machine
    gate.open()
    for machine in opened:
        machine.close()


@pytest.fixture
def first(open_machine):
    """A machine whose memories are digested and whose segment is built."""
    machine = open_machine()
    for text in TEXTS:
        machine.client.write(text)
    machine.build()
    return machine


def keys_of(machine):
    return open_storage(machine.settings).list()


def test_new_machine_answers_fully_from_object_storage(first, open_machine):
    other = open_machine()
    assert other.find("billing port") == TEXTS[0]
    assert other.states("zebras attic") == {"lexical": "ok", "dense": "ok"}
    assert {key.split("/")[0] for key in keys_of(first)} == {"vectors", "segments"}


def test_copies_may_be_deleted_at_any_time(first, open_machine):
    other = open_machine()
    assert other.find("billing port") == TEXTS[0]
    for _ in range(2):
        for folder in (other.paths.lexical, other.paths.vectors):
            shutil.rmtree(folder)
        assert other.find("zebras") == TEXTS[2]
        other.container.contexts._kept._kept.clear()
        assert other.states("deploys of the shop") == {"lexical": "ok", "dense": "ok"}
    # One that was cut short is fetched again.
    for file in [*other.paths.lexical.rglob("*.npy"), *other.paths.vectors.glob("*.codes")]:
        file.write_bytes(file.read_bytes()[:-1])
    other.container.contexts._kept._kept.clear()
    assert other.states("billing service") == {"lexical": "ok", "dense": "ok"}


@pytest.mark.parametrize("trouble", ["close", "stall"])
def test_storage_out_of_reach_costs_meaning_and_never_words(first, open_machine, gate, trouble, monkeypatch):
    monkeypatch.setattr(lexical, "PATIENCE_S", 0.2)
    other = open_machine()
    getattr(gate, trouble)()
    wait_until("words are found", lambda: other.client.find_ids("billing port"))
    assert other.states("zebras attic")["lexical"] == "ok"
    assert other.states("zebras attic")["dense"] in ("late", "cold")
    wait_until("the trouble is told", lambda: {"recall.dense", "recall.lexical"} <= set(other.errors()))
    # Once, not with every search.
    assert other.errors().count("recall.dense") == 1
    # One that holds everything goes on as it was.
    assert first.find("zebras") == TEXTS[2]
    gate.open()
    wait_until("meaning is back", lambda: other.states("where do zebras sleep")["dense"] == "ok")


def test_process_with_loaded_vectors_continues_without_object_storage(first, gate):
    assert first.states("billing port") == {"lexical": "ok", "dense": "ok"}
    with first.container.databases.get("default").write() as db:
        meta.increment(db, meta.VECTORS_GENERATION)
    gate.close()
    wait_until("the trouble is told", lambda: is_whole(first) and "recall.dense" in first.errors())


def is_whole(machine):
    return machine.states("zebras attic") == {"lexical": "ok", "dense": "ok"}


@pytest.mark.parametrize("trouble", ["close", "stall"])
def test_digestion_waits_for_storage_and_loses_nothing(first, gate, trouble):
    written = first.client.write("Giraffes eat acacia leaves")
    getattr(gate, trouble)()
    runner, log = first.worker.stages("default")[Stage.EMBED], []
    with pytest.raises(StorageUnreachable):
        digest_stage(first.worker, Stage.EMBED, runner, log.append)
    with first.container.databases.get("default").read() as db:
        assert work.count_pending(db)[Stage.EMBED] == 1
        assert work.count_dead(db)[Stage.EMBED] == 0
    assert log == []
    with pytest.raises(StorageUnreachable):
        first.worker.context("default").repair_vectors()
    gate.open()
    first.build()
    assert first.worker.context("default").repair_vectors() == 0
    assert first.client.find_ids("giraffes acacia")[0] == written
    assert len(first.worker.vectors("default").seqs()) == first.worker.vectors("default").count() == 4


def test_partially_sent_segment_is_never_named(first, open_machine, gate):
    named = name_of(first)
    first.client.write("Giraffes eat acacia leaves")
    gate.close_after(2000)
    with pytest.raises(StorageUnreachable):
        first.worker.context("default").rebuild_segment()
    assert name_of(first) == named
    gate.open()
    assert first.find("giraffes") == "Giraffes eat acacia leaves"
    assert open_machine().find("giraffes") == "Giraffes eat acacia leaves"
    assert first.worker.context("default").rebuild_segment() == 4
    # What was left behind goes with the next segment, once nobody can be waiting for it.
    shared = SharedSegments(open_storage(first.settings).below("segments/default"), first.paths.lexical)
    shared.remove_others(name_of(first), datetime.now(UTC) + GRACE + timedelta(seconds=1), at_once=False)
    kept = {key.split("/")[2] for key in keys_of(first) if key.startswith("segments/")}
    assert kept == {name_of(first)}


def name_of(machine):
    with machine.container.databases.get("default").read() as db:
        return meta.get(db, meta.SEGMENT)


def test_segment_named_by_another_machine_during_a_build_is_kept(first, monkeypatch):
    first.client.write("Giraffes eat acacia leaves")
    context, send = first.worker.context("default"), SharedSegments.send
    raced = threading.Event()

    def send_late(self, name):
        send(self, name)
        if not raced.is_set():
            raced.set()
            first.client.write("Lions rest at noon")
            # As a process does that holds no lock of this machine.
            with monkeypatch.context() as patch:
                patch.setattr("pipeline.features.indexing.job.FileLock", lambda _file: threading.Lock())
                context.rebuild_segment()

    monkeypatch.setattr(SharedSegments, "send", send_late)
    context.rebuild_segment()
    assert first.find("giraffes acacia") == "Giraffes eat acacia leaves"
    assert first.find("lions") == "Lions rest at noon"


def test_a_purge_leaves_nothing_on_storage(first, bucket):
    secret = first.client.write("The okapi password hint is mangosteen")
    first.build()
    [seq] = first.worker.vectors("default").seqs() - {1, 2, 3}
    storage = open_storage(first.settings)
    assert any(b"mangosteen" in storage.get(key) for key in storage.list())
    traces = [first.worker.vectors("default").vectors([seq]).matrix.tobytes(), *codes_of(first, seq)]
    assert all(any(trace in storage.get(key) for key in storage.list()) for trace in traces)
    first.client.delete(f"/v1/memories/{secret}?hard=true")
    digest_all(first.worker)
    for trace in (b"mangosteen", *traces):
        assert [key for key in storage.list() if trace in storage.get(key)] == []
    assert secret not in first.client.find_ids("okapi mangosteen")
    assert first.states("billing port") == {"lexical": "ok", "dense": "ok"}


def codes_of(machine, seq):
    table = machine.worker.vectors("default")
    rows = table.read_codes(None, 1000).latest()
    return [table._codes._copy.pack(rows.select(rows.seqs == seq))]
