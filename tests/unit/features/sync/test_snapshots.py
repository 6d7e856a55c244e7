"""Compaction: a device's many small segments become a snapshot, from which newcomers start."""

import contextlib
from itertools import pairwise

import pytest

from pipeline.features.sync import exchange
from pipeline.features.sync.remotes import objects
from pipeline.features.sync.segment import parse_name
from pipeline.kernel.store.objects import ObjectStorage
from pipeline.write import revise
from tests.fakes.homes import SHARED, Home, exchange_until_still, pair


@pytest.fixture
def homes(tmp_path, monkeypatch):
    monkeypatch.setattr(exchange, "MOST_IN_SNAPSHOT", 4)
    monkeypatch.setattr(objects, "MANY_SEGMENTS", 3)
    made = [Home(tmp_path / name) for name in ("one", "two")]
    pair(*made, url=f"dir:{tmp_path}/shared")
    yield made
    for home in made:
        home.close()


def files_of(tmp_path, *, snapshots):
    """Return the stretches that stand in the folder."""
    root = tmp_path / "shared"
    names = [parse_name(file.relative_to(root).as_posix()) for file in root.rglob("segments/*/*")]
    return sorted((one.first, one.last) for one in names if one.is_snapshot == snapshots)


@contextlib.contextmanager
def newcomer(tmp_path, one):
    with contextlib.closing(Home(tmp_path / "late")) as late:
        late.sync.join(one.sync.invite())
        late.sync.add(SHARED, f"dir:{tmp_path}/shared")
        yield late


def say_one_by_one(home, count):
    ids = []
    for number in range(count):
        ids.append(home.say(f"memory number {number} stands alone"))
        home.exchange()
    return ids


def test_small_segments_become_parts_without_a_gap_that_a_newcomer_reads(homes, tmp_path):
    one, two = homes
    say_one_by_one(one, 10)
    parts = files_of(tmp_path, snapshots=True)
    assert len(parts) > 1
    assert parts[0][0] == 1
    assert all(before[1] + 1 == after[0] for before, after in pairwise(parts))
    assert all(first > parts[-1][1] for first, _ in files_of(tmp_path, snapshots=False))
    exchange_until_still(two)
    with newcomer(tmp_path, one) as late:
        exchange_until_still(late)
        assert late.texts() == two.texts() == one.texts()


def test_device_that_read_the_segments_skips_the_snapshot(homes, tmp_path):
    one, two = homes
    for number in range(10):
        one.say(f"memory number {number} stands alone")
        one.exchange()
        two.exchange()
    assert files_of(tmp_path, snapshots=True)
    done = two.exchange()
    assert (done.applied, done.known) == (0, 0)


def test_few_small_segments_do_not_trigger_a_snapshot(homes, tmp_path, monkeypatch):
    one, _ = homes
    monkeypatch.setattr(exchange, "MOST_ITEMS", 10)
    monkeypatch.setattr(objects, "MOST_ITEMS", 10)
    for number in range(40):
        one.say(f"memory number {number} stands alone")
    one.exchange()
    say_one_by_one(one, 5)
    assert files_of(tmp_path, snapshots=True) == []


def test_a_purge_is_gone_from_every_part(homes, tmp_path):
    one, two = homes
    ids = say_one_by_one(one, 10)
    exchange_until_still(one, two)
    for memory in ids[:9]:
        revise.purge(one.database(), memory)
    one.exchange()
    with newcomer(tmp_path, one) as late:
        exchange_until_still(late)
        assert late.texts() == ["memory number 9 stands alone"]
        assert late.exchange().refused == []


def test_a_snapshot_that_was_broken_off_is_written_by_the_next_exchange(homes, tmp_path, monkeypatch):
    one, two = homes
    ids = say_one_by_one(one, 10)
    revise.purge(one.database(), ids[0])
    put = ObjectStorage.put

    def fail_at_the_second(storage, path, content, *, once=False):
        if path.endswith(".snapshot") and "000000000001-" not in path:
            raise OSError("the power is gone")
        return put(storage, path, content, once=once)

    with monkeypatch.context() as patch:
        patch.setattr(ObjectStorage, "put", fail_at_the_second)
        with pytest.raises(OSError, match="power"):
            one.sync.now()
    exchange_until_still(two)
    assert two.texts() == one.texts()
    exchange_until_still(one)
    with newcomer(tmp_path, one) as late:
        exchange_until_still(late)
        assert late.texts() == one.texts()
