"""A store that was put back in an earlier state gets and sends everything again, and its device stays the same."""

import shutil

import pytest

from pipeline.features.snapshots import usecases as snapshots
from pipeline.kernel.errors import RemoteUnreachable, StoreUnavailable
from pipeline.kernel.store import meta, refusals
from pipeline.text.normalize import content_hash
from pipeline.write import revise
from pipeline.write.move import move_memory
from tests.fakes.homes import Home, exchange_until_still, pair

pytestmark = pytest.mark.files


@pytest.fixture
def homes(tmp_path):
    homes = [Home(tmp_path / name) for name in ("one", "two")]
    pair(*homes, url=f"dir:{tmp_path / 'shared'}")
    yield homes
    for home in homes:
        home.close()


def restore_snapshot(home):
    name = snapshots.list_snapshots(home.settings, "default")[-1].name
    snapshots.restore_snapshot(home.settings, "default", name, print)


def put_copy_back(home):
    file = home.settings.paths.workspace("default").events
    shutil.copyfile(home.root / "copy.sqlite", file)


@pytest.mark.parametrize("put_back", [restore_snapshot, put_copy_back], ids=lambda way: way.__name__)
def test_earlier_store_gets_and_sends_everything(homes, put_back):
    one, two = homes
    first = one.say("Written before the copy")
    one.database().complete_file()
    shutil.copyfile(one.settings.paths.workspace("default").events, one.root / "copy.sqlite")
    snapshots.take_snapshot(one.settings, "default")
    one.edit(first, content="Written before the copy, and edited")
    one.say("Written after the copy")
    two.say("Written on the other machine")
    exchange_until_still(one, two)
    one.close()
    put_back(one)
    homes[0] = one = Home(one.root)
    assert one.texts() == ["Written before the copy"]
    one.say("Written after it was put back")
    exchange_until_still(one, two)
    assert (
        one.texts()
        == two.texts()
        == [
            "Written after it was put back",
            "Written after the copy",
            "Written before the copy, and edited",
            "Written on the other machine",
        ]
    )
    assert len(two.sync.devices()) == 2
    with one.database().read() as db:
        assert meta.get(db, meta.RESTORED) is None


def put_back_earlier(home, put_back, *later):
    """Return a home that was put back to its state before some memories, which it exchanged."""
    home.database().complete_file()
    shutil.copyfile(home.settings.paths.workspace("default").events, home.root / "copy.sqlite")
    snapshots.take_snapshot(home.settings, "default")
    for text in later:
        home.say(text)
    home.sync.now()
    home.close()
    put_back(home)
    return Home(home.root)


@pytest.mark.parametrize("put_back", [restore_snapshot, put_copy_back], ids=lambda way: way.__name__)
@pytest.mark.parametrize("limit", [("default",), ("work",)], ids=lambda limit: limit[0])
def test_remote_that_was_offline_invents_no_device(homes, tmp_path, put_back, limit):
    one, two = homes
    # By name, it comes before the remote `shared`.
    one.sync.add("earlier", f"dir:{tmp_path / 'earlier'}", workspaces=limit)
    one.say("Written before the copy")
    one.say("Written at work", "work")
    one.sync.now()
    (tmp_path / "earlier").rename(tmp_path / "away")
    homes[0] = one = put_back_earlier(one, put_back, "Written after the copy")
    (tmp_path / "away").rename(tmp_path / "earlier")
    (tmp_path / "shared").rename(tmp_path / "away")
    assert isinstance(one.sync.now()["shared"], RemoteUnreachable)
    one.say("Written after it was put back")
    one.sync.now(["earlier"])
    (tmp_path / "away").rename(tmp_path / "shared")
    exchange_until_still(one, two)
    one.sync.now()
    expected = ["Written after it was put back", "Written after the copy", "Written before the copy"]
    assert one.texts() == two.texts() == expected
    assert len(one.sync.devices()) == len(two.sync.devices()) == 2
    with one.database().read() as db:
        assert meta.get(db, meta.RESTORED) is None


def test_repair_keeps_what_a_restored_store_lacks(homes, tmp_path):
    one, two = homes
    one.say("Written before the copy")
    one.sync.now()
    [first] = (tmp_path / "shared" / "segments").rglob("*.*")
    homes[0] = one = put_back_earlier(one, restore_snapshot, "Written after the copy")
    first.write_bytes(b"damaged")
    one.sync.repair()
    exchange_until_still(one, two)
    assert one.texts() == two.texts() == ["Written after the copy", "Written before the copy"]
    assert len(two.sync.devices()) == 2


def damage(home, *workspaces):
    """Return a home whose stores of some workspaces cannot be read."""
    home.close()
    for workspace in workspaces:
        home.settings.paths.workspace(workspace).events.write_bytes(b"damaged" * 1000)
    return Home(home.root)


def test_damaged_store_stops_only_its_remotes(homes, tmp_path):
    one, two = homes
    one.sync.remove("shared")
    one.sync.add("shared", f"dir:{tmp_path / 'shared'}", workspaces=["default"])
    one.say("Written elsewhere", "elsewhere")
    one.say("Written at work", "work")
    one.sync.add("all", f"dir:{tmp_path / 'all'}", workspaces=["work"])
    one.sync.now()
    homes[0] = one = damage(one, "work", "elsewhere")
    one.say("Written next to a damaged store")
    two.say("Written by the other machine")
    two.exchange()
    results = one.sync.now()
    assert isinstance(results["all"], StoreUnavailable)
    assert (results["shared"].applied > 0, results["shared"].sent) == (True, 1)
    two.exchange()
    assert one.texts() == two.texts() == ["Written by the other machine", "Written next to a damaged store"]
    says = [event.says for event in one.sync.events(20)]
    assert any(text.startswith("not checked: work") for text in says)
    assert not any("elsewhere" in text for text in says)


def test_remote_exchanges_the_stores_next_to_a_damaged_one(homes, tmp_path):
    one, two = homes
    for number in range(3):
        purged = one.say(f"Written first at work {number}", "work")
    one.say("Written first")
    exchange_until_still(one, two)
    work = one.settings.paths.workspace("work").events
    one.database("work").complete_file()
    shutil.copyfile(work, tmp_path / "work.sqlite")
    homes[0] = one = damage(one, "work")
    one.say("Written next to a damaged store")
    two.say("Written by the other machine")
    two.say("Written by the other machine at work", "work")
    revise.purge(two.database("work"), purged)
    two.exchange()
    done = one.exchange()
    assert done.sent == 1
    assert done.refused[0].startswith("not exchanged: work: ")
    assert one.sync.status()[0].error == done.refused[0]
    assert len(one.sync.devices()) == 2
    one.close()
    shutil.copyfile(tmp_path / "work.sqlite", work)
    homes[0] = one = Home(one.root)
    exchange_until_still(one, two)
    assert one.texts() == two.texts()
    assert len(one.texts()) == 3
    assert one.texts("work") == two.texts("work")
    assert len(one.texts("work")) == 3
    assert one.sync.status()[0].error is None
    assert len(one.sync.devices()) == 2


@pytest.mark.parametrize("is_sent_first", [True, False], ids=["move sent first", "purge sent first"])
def test_memory_that_is_moved_while_it_is_purged_is_gone_everywhere(homes, is_sent_first):
    one, two = homes
    memory_id = one.say("The sonnenbrille costs 40 euros")
    exchange_until_still(one, two)
    usual = two.container.workspace("default")
    move_memory(usual, usual.sibling("work"), memory_id)
    if is_sent_first:
        two.exchange()
    revise.purge(one.database(), memory_id)
    exchange_until_still(one, two)
    for home in homes:
        assert home.texts() == home.texts("work") == []


def test_text_purged_before_the_first_sync_stays_refused(tmp_path):
    one, two = (Home(tmp_path / name) for name in ("one", "two"))
    memory_id = one.say("The flumadiddle was signed")
    revise.purge(one.database(), memory_id)
    pair(one, two, url=f"dir:{tmp_path / 'shared'}")
    exchange_until_still(one, two)
    with one.database().read() as db:
        assert refusals.find(db, content_hash("The flumadiddle was signed")) is not None
    one.close()
    two.close()
