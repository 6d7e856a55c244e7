"""What a source gives on one machine, where another machine's checkout of it holds something else."""

import pytest

from pipeline.features.ingest.fields import Item
from pipeline.features.ingest.sources import forget_items, list_items, take_items
from pipeline.kernel.records import Draft, Source
from pipeline.write.revise import archive
from tests.fakes.homes import Home, exchange_until_still, pair
from tests.fakes.in_process import workspace_over

SOURCE = "project:shop-0d1a25a8"
DOOR, GATE = "door.py opens the door", "gate.py keeps the gate"


@pytest.fixture(params=["before", "after"])
def homes(tmp_path, request):
    """Two homes that have read a checkout each, one of them before it knew of the other, or after it."""
    made = [Home(tmp_path / name) for name in ("one", "two")]
    pair(*made, url=f"dir:{tmp_path}/shared")
    for home in made:
        read(home, door=DOOR, gate=GATE)
        if request.param == "after":
            exchange_until_still(*made)
    exchange_until_still(*made)
    yield made
    for home in made:
        home.close()


def read(home, **files):
    """Read a checkout as it is; a file is known by its text."""
    offered = [Item(name, text, (Draft(text, source=Source.IMPORT),)) for name, text in files.items()]
    return take_items(workspace_over(home.database()), SOURCE, offered)


def forget(home, *files):
    forget_items(workspace_over(home.database()), SOURCE, files)


def test_both_checkouts_give_one_memory_each(homes):
    assert homes[0].texts() == homes[1].texts() == [DOOR, GATE]


def test_memory_missing_in_another_checkout_returns_when_read_again(homes):
    one, two = homes
    forget(one, "door")
    exchange_until_still(*homes)
    assert two.texts() == [GATE]
    page = list_items(workspace_over(two.database()), SOURCE, 10, None)
    assert {item.key for item in page.items if not item.digest} == {"door"}
    assert read(two, door=DOOR, gate=GATE).restored
    exchange_until_still(*homes)
    assert one.texts() == two.texts() == [DOOR, GATE]
    assert all(item.digest for item in list_items(workspace_over(two.database()), SOURCE, 10, None).items)


def test_memory_in_no_checkout_is_removed_everywhere(homes):
    for home in homes:
        read(home, door="door.py shuts the door", gate=GATE)
        exchange_until_still(*homes)
    assert homes[0].texts() == homes[1].texts() == ["door.py shuts the door", GATE]


def test_the_machine_that_lacks_it_hides_it_no_second_time(homes):
    one, two = homes
    forget(one, "door")
    exchange_until_still(*homes)
    read(two, door=DOOR, gate=GATE)
    exchange_until_still(*homes)
    read(one, gate=GATE)
    exchange_until_still(*homes)
    assert one.texts() == two.texts() == [DOOR, GATE]


def test_memory_archived_on_another_device_is_not_restored_by_a_checkout(homes):
    one, two = homes
    archive(one.database(), one.find(DOOR))
    exchange_until_still(*homes)
    assert all(item.digest for item in list_items(workspace_over(two.database()), SOURCE, 10, None).items)
    assert not read(two, door=DOOR, gate=GATE).restored
    exchange_until_still(*homes)
    assert one.texts() == two.texts() == [GATE]
