"""The page of other machines: how remotes stand, who shares, and what two machines wrote into one field."""

import pytest

from pipeline.kernel.records import Revision
from pipeline.write import revise
from tests.fakes.dashboard import sign_in
from tests.fakes.homes import SHARED, Home

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def other(tmp_path):
    made = Home(tmp_path / "other")
    yield made
    made.close()


@pytest.fixture
def browser(client):
    client.write("anything")
    return sign_in(client)


def test_sync_page_without_devices_explains_how_to_add_one(browser):
    page = browser.page("/w/default/sync")
    assert "No other machines yet" in page
    assert "reverie sync add" in page


def test_sync_conflict_is_shown_and_the_lost_value_can_be_restored(client, container, browser, other, tmp_path):
    sync = container.sync
    memory = client.write("port 1")
    other.sync.join(sync.invite())
    for one in (sync, other.sync):
        one.add(SHARED, f"dir:{tmp_path}/shared")
        one.now()
    revise.edit(other.database(), memory, Revision(content=f"port 2 {HOSTILE}"))
    client.patch(f"/v1/memories/{memory}", {"content": "port 3"})
    for one in (other.sync, sync):
        one.now()
    page = browser.page("/w/default/sync")
    assert HOSTILE not in page
    assert "port 2" in page
    assert SHARED in page
    [conflict] = sync.conflicts("default")
    form = {"memory_id": memory, "field": "content", "operation": conflict.operation}
    browser.post("/w/default/sync/restore", form)
    assert client.get(f"/v1/memories/{memory}").get_json()["content"].startswith("port 2")
    assert "port 3" not in browser.page("/w/default/sync")
