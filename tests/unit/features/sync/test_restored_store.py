"""A store that was put back in an earlier state gets and sends everything again, and its device stays the same."""

import shutil

import pytest

from pipeline.features.snapshots import usecases as snapshots
from pipeline.kernel.store import meta, refusals
from pipeline.text.normalize import content_hash
from pipeline.write import revise
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
