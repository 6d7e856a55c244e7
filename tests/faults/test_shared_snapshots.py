"""Snapshots of a store on PostgreSQL, on object storage: any machine takes them, and purges reach into them."""

import contextlib
import sqlite3
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pipeline.features.diagnostics.usecases import CheckContext, check_workspace
from pipeline.features.snapshots import usecases as snapshots
from pipeline.index.storage import open_storage
from pipeline.kernel.errors import Conflict, NotFound
from pipeline.kernel.store import backup, leases, meta, objects
from tests.fakes.command_line import run_json
from tests.fakes.dashboard import sign_in
from tests.fakes.in_process import digest_all, run_job
from tests.fakes.team import Machine

BUCKET = "snapshots"
SAID = ("The billing service listens on port 8123", "The okapi password hint is mangosteen")


@pytest.fixture(scope="module")
def bucket(s3):
    s3.make_bucket(BUCKET)
    return s3


@pytest.fixture
def gate(gate, monkeypatch):
    """A gate before the S3 server, at which nobody knocks twice."""
    monkeypatch.setattr(objects, "MOST_RETRIES", 0)
    return gate


@pytest.fixture
def open_machine(gate, store_url, tmp_path):
    vectors, opened = f"s3://{BUCKET}/{uuid.uuid4().hex}", []

    def open_machine():
        opened.append(Machine(tmp_path / f"home-{len(opened)}", store_url, vectors))
        return opened[-1]

    yield open_machine
    gate.open()
    for machine in opened:
        machine.close()


def take(machine):
    return run_job(machine.worker, "default", "snapshot").report.counts


def take_yesterday(machine):
    """Take a snapshot that the next one does not replace: of each day one is kept."""
    database = machine.container.databases.get("default")
    machine.worker.context("default").snapshots.take(database, datetime.now(UTC) - timedelta(days=1))


def list_kept(machine):
    return [(one.taken, one.count) for one in snapshots.list_snapshots(machine.settings, "default")]


def test_shared_snapshot_job_copies_changes_and_every_machine_lists_them(open_machine, tmp_path):
    first, second = open_machine(), open_machine()
    for text in SAID:
        first.client.write(text)
    digest_all(first.worker)
    take_yesterday(first)
    assert take(second) == {"taken": 0, "unchanged": 1}
    assert list_kept(first) == list_kept(second) == [("daily", 2)]
    second.client.write("Zebras sleep in the attic")
    assert take(second)["taken"] == 1
    assert list_kept(first) == [("daily", 3), ("daily", 2)]
    # A file of SQLite like every snapshot.
    storage = open_storage(first.settings).below("snapshots/default")
    newest = snapshots.list_snapshots(first.settings, "default")[0]
    file = tmp_path / "copy.sqlite"
    assert storage.fetch(f"{newest.name}.sqlite", file)
    with contextlib.closing(sqlite3.connect(file)) as db:
        backup.verify(db, backup.row_counts(db))
        assert {row[0] for row in db.execute("SELECT content FROM memory")} == {*SAID, "Zebras sleep in the attic"}
        assert db.execute("SELECT count(*) FROM turn").fetchone() == (0,)


def test_a_purge_reaches_into_every_copy(open_machine):
    machine = open_machine()
    kept, doomed = (machine.client.write(text) for text in SAID)
    digest_all(machine.worker)
    take_yesterday(machine)
    machine.client.write("Zebras sleep in the attic")
    take(machine)
    machine.client.delete(f"/v1/memories/{doomed}?hard=true")
    digest_all(machine.worker)
    storage = open_storage(machine.settings)
    copies = [key for key in storage.list("snapshots/default/") if key.endswith(".sqlite")]
    assert len(copies) == 2
    assert [key for key in storage.list() if b"mangosteen" in storage.get(key)] == []
    assert list_kept(machine) == [("daily", 2), ("daily", 1)]
    assert machine.client.find_ids("billing port")[0] == kept


def test_shared_snapshot_restore_keeps_the_replaced_data(open_machine, tmp_path):
    machine = open_machine()
    first, doomed = (machine.client.write(text) for text in SAID)
    machine.build()
    take(machine)
    machine.client.write("Zebras sleep in the attic")
    machine.client.delete(f"/v1/memories/{doomed}?hard=true")
    with pytest.raises(Conflict):
        snapshots.restore_snapshot(machine.settings, "default", "latest", print)
    machine.close()
    with pytest.raises(NotFound):
        snapshots.restore_snapshot(machine.settings, "default", "20200101T000000000Z", print)
    restored = snapshots.restore_snapshot(machine.settings, "default", "latest", print)
    # A purge is not taken back, whether or not it was worked off.
    assert restored.memories == 1
    other = open_machine()
    assert ("before-restore", 2) in list_kept(other)
    # No job waits for the lease under which the copy was taken.
    with other.container.databases.get("default").read() as db:
        assert meta.list_keys(db, leases.PREFIX) == []
    assert other.client.get("/v1/memories").get_json()["items"][0]["id"] == first
    other.build()
    assert other.find("billing port") == SAID[0]
    assert other.states("billing port") == {"lexical": "ok", "dense": "ok"}


def read_ages(machine):
    """Return the metric of snapshots' age, by workspace, in a scrape that tells of every workspace."""
    text = machine.client.get("/metrics").get_data(as_text=True)
    samples = {
        (sample.name, sample.labels.get("workspace")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples["reverie_workspace_up", "default"] == 1
    return {name: value for (family, name), value in samples.items() if family == "reverie_snapshot_age_seconds"}


def read_overview(machine):
    return sign_in(machine.client).page("/w/default/")


def check_snapshots(machine):
    context = CheckContext(machine.settings, False, None, lambda _workspace, _job: "")
    return {one.check: one for one in check_workspace(context, "default")}["default: snapshots"]


def test_metrics_overview_and_doctor_look_where_they_lie(open_machine, monkeypatch):
    machine = open_machine()
    machine.client.write(SAID[0])
    machine.build()
    assert read_ages(machine) == {}
    assert "This workspace has no snapshot yet" in read_overview(machine)
    missing = check_snapshots(machine)
    assert (missing.state, missing.says) == ("warn", "there is none yet")
    assert missing.repair().startswith("took ")
    # What was listed is kept for a while.
    assert read_ages(machine) == {}
    monkeypatch.setattr(snapshots, "KEPT_S", 0.0)
    assert read_ages(machine)["default"] < 600
    assert "has no snapshot" not in read_overview(machine)
    [kept] = snapshots.list_snapshots(machine.settings, "default")
    assert check_snapshots(machine).says == f"1, the newest {kept.name}"


@pytest.mark.parametrize("trouble", ["close", "stall"])
def test_unreachable_snapshot_storage_is_reported_and_breaks_nothing(open_machine, gate, monkeypatch, trouble):
    machine = open_machine()
    machine.client.write(SAID[0])
    machine.build()
    take(machine)
    monkeypatch.setattr(snapshots, "WAITED_S", 0.1)
    getattr(gate, trouble)()
    assert read_ages(machine) == {}
    page = read_overview(machine)
    assert "cannot reach the snapshot storage" in page
    assert "has no snapshot" not in page
    found = check_snapshots(machine)
    assert found.state == "fail"
    assert "cannot be used" in found.says


def test_the_command_line_takes_and_restores_them(open_machine, monkeypatch):
    machine = open_machine()
    machine.client.write(SAID[0])
    machine.close()
    monkeypatch.setenv("REVERIE_HOME", str(machine.settings.home))
    monkeypatch.setenv("REVERIE_STORE", machine.settings.store.reveal())
    monkeypatch.setenv("REVERIE_VECTORS", machine.settings.vectors)
    taken = run_json("-w", "default", "store", "snapshot", "take")
    assert taken["memories"] == 1
    assert [one["name"] for one in run_json("-w", "default", "store", "snapshot", "list")["items"]] == [taken["name"]]
    assert run_json("-w", "default", "store", "snapshot", "restore", "latest")["memories"] == 1
