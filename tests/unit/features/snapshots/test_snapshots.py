"""What a server that is asked often knows of snapshots on object storage: listed at once, kept, never waited for."""

import threading
from datetime import UTC, datetime

import pytest

from config.declared import Secret
from pipeline.features.snapshots import usecases as snapshots
from pipeline.features.snapshots.usecases import KeptSnapshots, find_snapshots, takes_snapshots
from pipeline.kernel.errors import StorageUnreachable
from pipeline.kernel.store.objects import ObjectStorage
from tests.fakes.in_process import fast_settings

STORE = {"store": Secret("postgresql://127.0.0.1:1/nothing")}
OLD, NEW = "20260101T000000000Z", "20260102T000000000Z"


@pytest.fixture
def objects(tmp_path):
    (tmp_path / "storage").mkdir()
    objects = ObjectStorage.open(f"dir:{tmp_path / 'storage'}")
    for key in (f"red/{OLD}.sqlite", f"red/{NEW}.sqlite", "red/contents.json", f"blue/before-restore-{OLD}.sqlite"):
        objects.put(f"snapshots/{key}", b"")
    return objects


@pytest.fixture
def settings(tmp_path):
    return fast_settings(tmp_path / "home", vectors="s3://bucket", **STORE)


@pytest.fixture
def listings(monkeypatch):
    """How often storage was listed."""
    made = []

    def count(objects, true=snapshots.find_shared_snapshots):
        made.append(objects)
        return true(objects)

    monkeypatch.setattr(snapshots, "find_shared_snapshots", count)
    return made


def test_those_of_every_workspace_are_found_by_one_listing(settings, objects, listings, monkeypatch):
    kept = KeptSnapshots(settings, objects)
    for _ in range(3):
        assert [one.name for one in kept.find("red")] == [NEW, OLD]
        assert [one.name for one in kept.find("blue")] == [f"before-restore-{OLD}"]
        assert kept.find("green") == []
    assert len(listings) == 1
    objects.put(f"snapshots/green/{NEW}.sqlite", b"")
    monkeypatch.setattr(snapshots, "KEPT_S", 0.0)
    assert [one.name for one in kept.find("green")] == [NEW]


def test_the_same_is_found_of_one_workspace_alone(settings, objects):
    assert [one.name for one in find_snapshots(settings, "red", objects)] == [NEW, OLD]
    assert find_snapshots(settings, "green", objects) == []


def test_the_age_is_that_of_the_newest(settings, objects):
    kept = KeptSnapshots(settings, objects)
    newest = datetime(2026, 1, 2, tzinfo=UTC)
    assert kept.measure_age_s("red") <= (datetime.now(UTC) - newest).total_seconds()
    assert kept.measure_age_s("red") < kept.measure_age_s("blue")
    assert kept.measure_age_s("green") is None


def test_storage_that_refuses_is_asked_once_for_all(settings, objects, monkeypatch):
    asked = []

    def refuse(_objects):
        asked.append(1)
        raise StorageUnreachable("no route")

    monkeypatch.setattr(snapshots, "find_shared_snapshots", refuse)
    kept = KeptSnapshots(settings, objects)
    for workspace in ("red", "blue", "red"):
        with pytest.raises(StorageUnreachable, match="no route"):
            kept.find(workspace)
    assert asked == [1]


def test_unresponsive_snapshot_storage_is_not_waited_for_and_retried(settings, objects, monkeypatch):
    answer, answered = threading.Event(), threading.Event()

    def answer_late(objects, true=snapshots.find_shared_snapshots):
        answer.wait(20)
        try:
            return true(objects)
        finally:
            answered.set()

    monkeypatch.setattr(snapshots, "find_shared_snapshots", answer_late)
    monkeypatch.setattr(snapshots, "WAITED_S", 0.0)
    kept = KeptSnapshots(settings, objects)
    for _ in range(2):
        with pytest.raises(StorageUnreachable, match="does not answer"):
            kept.find("red")
    answer.set()
    assert answered.wait(20)
    monkeypatch.setattr(snapshots, "WAITED_S", 20.0)
    assert len(kept.find("red")) == 2


def test_unexpected_listing_error_is_raised(settings, objects, monkeypatch):
    def fail(_objects):
        raise ZeroDivisionError

    monkeypatch.setattr(snapshots, "find_shared_snapshots", fail)
    with pytest.raises(ZeroDivisionError):
        KeptSnapshots(settings, objects).find("red")


@pytest.mark.parametrize("vectors", ["", "s3://bucket"])
def test_local_snapshots_are_in_the_data_directory_for_any_index_location(tmp_path, objects, listings, vectors):
    settings = fast_settings(tmp_path / "home", vectors=vectors)
    folder = settings.paths.workspace("red").snapshots
    folder.mkdir(parents=True)
    (folder / f"{NEW}.sqlite").touch()
    kept = KeptSnapshots(settings, objects if vectors else None)
    assert takes_snapshots(settings)
    assert [one.file for one in kept.find("red")] == [folder / f"{NEW}.sqlite"]
    assert listings == []


def test_store_on_a_server_ignores_local_snapshot_files(tmp_path):
    settings = fast_settings(tmp_path / "home", **STORE)
    folder = settings.paths.workspace("red").snapshots
    folder.mkdir(parents=True)
    (folder / f"{NEW}.sqlite").touch()
    assert not takes_snapshots(settings)
    assert KeptSnapshots(settings, None).find("red") == []
