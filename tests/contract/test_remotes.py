"""What every remote promises: a folder, S3-compatible storage, and another Reverie."""

import contextlib
import time
import uuid

import pytest

from pipeline.kernel.errors import PeerRefused, RemoteUnreachable
from pipeline.kernel.records import Revision, Scope, ScopeKind
from pipeline.kernel.store import clock, history, oplog
from pipeline.kernel.store.objects import ObjectStorage
from pipeline.write import revise
from tests.fakes.homes import SHARED, Home, exchange_until_still, pair
from tests.support.served import serve_home

BUCKET = "memories"


@pytest.fixture(scope="module")
def bucket(s3):
    s3.make_bucket(BUCKET)
    return s3


@pytest.fixture(params=["folder", "s3", "http"])
def url(request, tmp_path, monkeypatch):
    """The address of a remote that several homes reach; for HTTP a home of its own that serves."""
    if request.param == "folder":
        yield f"dir:{tmp_path}/shared"
        return
    if request.param == "s3":
        server = request.getfixturevalue("bucket")
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield f"s3://{BUCKET}/{uuid.uuid4().hex}"
        return
    middle = Home(tmp_path / "middle")
    with serve_home(middle.settings) as port:
        yield f"http://127.0.0.1:{port}", middle
    middle.close()


@pytest.fixture
def homes(tmp_path, url):
    """Three homes of one circle that share a remote; where that is a server, it is of the circle too."""
    made = [Home(tmp_path / name) for name in ("one", "two", "three")]
    address, middle = url if isinstance(url, tuple) else (url, None)
    if middle is not None:
        middle.sync.join(made[0].sync.invite())
    pair(*made, url=address)
    yield made
    for home in made:
        home.close()


def test_writes_of_each_device_reach_all_devices(homes):
    one, two, three = homes
    memory = one.say("The build uses port 8123", tags=("build",))
    one.say("I drink tea", workspace="me")
    two.say("Deploys run on Fridays", workspace="shop")
    exchange_until_still(*homes)
    for home in homes:
        assert home.texts() == ["The build uses port 8123"]
        assert (home.texts("me"), home.texts("shop")) == (["I drink tea"], ["Deploys run on Fridays"])
    revise.edit(three.database(), memory, Revision(content="The build uses port 9000"))
    exchange_until_still(*homes)
    assert one.get(memory).content == "The build uses port 9000"
    revise.archive(two.database(), memory)
    exchange_until_still(*homes)
    assert one.texts() == three.texts() == []


def test_memories_from_before_sync_reach_all_devices_and_purges_persist(homes, tmp_path, url):
    with contextlib.closing(Home(tmp_path / "old")) as old:
        memory = old.say("The build uses make", tags=("build",))
        old.edit(memory, content="The build uses just")
        purged = old.say("the flumadiddle")
        revise.purge(old.database(), purged)
        with old.database().read() as db:
            assert db.execute("SELECT count(*) FROM operation").fetchone() == (0,)
        old.sync.join(homes[0].sync.invite())
        old.sync.add(SHARED, url[0] if isinstance(url, tuple) else url)
        assert old.sync.status()[0].ahead > 0
        exchange_until_still(*homes, old)
        for home in homes:
            assert home.texts() == ["The build uses just"]
            with home.database().read() as db:
                assert [one.content for one in history.of(db, 1) if one.event == "edited"] == ["The build uses make"]
                assert oplog.list_purged(db, [purged])


def test_source_trust_and_times_come_along(homes):
    one, two, _ = homes
    memory = one.say("Deploys run on Fridays", occurred_at="2025-01-02T03:04:05.000Z")
    exchange_until_still(*homes)
    mine, theirs = one.get(memory), two.get(memory)
    for name in ("source", "trust", "created_at", "occurred_at", "importance", "kind", "scope"):
        assert getattr(mine, name) == getattr(theirs, name), name


def test_exchanging_again_sends_and_takes_nothing(homes):
    homes[0].say("once")
    exchange_until_still(*homes)
    for home in homes:
        done = home.exchange()
        assert (done.applied, done.sent, done.put_aside, done.refused) == (0, 0, [], [])
        assert home.sync.status()[0].ahead == 0


def test_a_purge_reaches_every_device(homes):
    one, two, three = homes
    memory = one.say("the flumadiddle")
    exchange_until_still(*homes)
    revise.purge(two.database(), memory)
    exchange_until_still(*homes)
    for home in homes:
        assert home.get(memory) is None
        with home.database().read() as db:
            assert "flumadiddle" not in "\n".join(db.iterdump())
    assert three.texts() == []


def test_session_memories_are_not_synced(homes):
    one, two, _ = homes
    one.say("a thought", scope=Scope(ScopeKind.SESSION, "s1"), session_id="s1")
    one.say("a task's", scope=Scope(ScopeKind.TASK, "t1"))
    one.say("an agent's", scope=Scope(ScopeKind.AGENT, "a1"))
    one.say("everybody's")
    exchange_until_still(*homes)
    assert two.texts() == ["everybody's"]


def test_a_later_newcomer_gets_everything(homes, tmp_path, url):
    one, *_ = homes
    ids = [one.say(f"memory number {number} stands alone") for number in range(40)]
    for memory in ids[:10]:
        revise.edit(one.database(), memory, Revision(pinned=True))
    exchange_until_still(*homes)
    with contextlib.closing(Home(tmp_path / "late")) as late:
        late.sync.join(one.sync.invite())
        late.sync.add(SHARED, url[0] if isinstance(url, tuple) else url)
        exchange_until_still(late)
        assert late.texts() == one.texts()
        assert late.get(ids[0]).pinned


def test_devices_outside_the_circle_read_nothing(homes, tmp_path, url):
    homes[0].say("the flumadiddle")
    exchange_until_still(*homes)
    with contextlib.closing(Home(tmp_path / "stranger")) as stranger:
        stranger.sync.add(SHARED, url[0] if isinstance(url, tuple) else url)
        with contextlib.suppress(PeerRefused):
            assert stranger.exchange().refused
        assert "default" not in stranger.settings.paths.workspace_ids()


def test_a_revoked_device_reads_nothing_that_is_written_later(homes):
    one, two, three = homes
    one.say("before")
    exchange_until_still(*homes)
    lost = next(device for device, is_here in three.sync.devices() if is_here)
    one.sync.revoke(lost.node)
    exchange_until_still(one, two)
    one.say("after")
    exchange_until_still(one, two)
    assert two.texts() == ["after", "before"]
    with contextlib.suppress(PeerRefused):
        three.exchange()
    assert three.texts() == ["before"]


def test_earlier_memories_of_a_revoked_device_reach_all_devices(homes):
    one, two, three = homes
    for home in homes:
        home.say(f"from {home.root.name}")
    exchange_until_still(*homes)
    three.say("heard by one")
    three.exchange()
    one.exchange()
    one.say("and answered")
    one.exchange()
    three.say("heard by two")
    three.exchange()
    two.exchange()
    lost = next(device for device, is_here in three.sync.devices() if is_here)
    one.sync.revoke(lost.node)
    exchange_until_still(one, two)
    assert two.texts() == one.texts()
    assert {"heard by one", "and answered", "heard by two"} <= set(two.texts())


def test_quarantined_changes_beyond_the_limit_are_applied_later(homes, monkeypatch):
    one, two, _ = homes
    monkeypatch.setattr("pipeline.features.sync.exchange.MOST_PUT_ASIDE", 3)
    with monkeypatch.context() as patch:
        patch.setattr(clock, "wall_ms", lambda: time.time_ns() // 1_000_000 + 10 * clock.MAX_DRIFT_MS)
        far = [one.say(f"written in the year {number}") for number in range(9)]
    near = two.say("of today")
    for home in (one, two, one, two):
        home.exchange()
    assert one.get(near) is not None
    assert two.texts() == ["of today"]
    told = [*one.sync.look(), *two.sync.look()]
    assert any(status.behind or status.ahead for status in told)
    monkeypatch.setattr(clock, "MAX_DRIFT_MS", 20 * clock.MAX_DRIFT_MS)
    exchange_until_still(one, two)
    assert all(two.get(memory) is not None for memory in far)
    assert not any(status.behind or status.ahead for status in [*one.sync.look(), *two.sync.look()])


def test_rejected_memory_is_no_longer_pending_after_its_purge(homes, monkeypatch):
    one, two, _ = homes
    with monkeypatch.context() as patch:
        patch.setattr(clock, "wall_ms", lambda: time.time_ns() // 1_000_000 + 10 * clock.MAX_DRIFT_MS)
        far = one.say("written in a year to come")
    one.exchange()
    revise.purge(one.database(), far)
    monkeypatch.setattr(clock, "MAX_DRIFT_MS", 20 * clock.MAX_DRIFT_MS)
    exchange_until_still(one, two)
    assert one.sync.status()[0].ahead == 0
    assert two.get(far) is None


def test_unreachable_remote_is_reported_and_loses_nothing(homes, url, monkeypatch):
    one, two, _ = homes
    one.say("patient")
    remote = one.sync.peers.remotes()[0]
    where = {"d": "dir:/nowhere/at/all", "s": "s3://no-such-bucket-anywhere/x", "h": "http://127.0.0.1:9"}
    one.sync.peers.put_remote(type(remote)(**{**one_fields(remote), "url": where[remote.url[0]]}))
    with pytest.raises(RemoteUnreachable):
        one.exchange()
    [status] = one.sync.status()
    assert (status.ahead, status.last_ok_at) == (1, None)
    assert status.error
    one.sync.peers.put_remote(remote)
    exchange_until_still(one, two)
    assert two.texts() == ["patient"]
    assert one.sync.status()[0].error is None


def one_fields(remote):
    return {name: getattr(remote, name) for name in remote.__slots__}


def test_only_the_chosen_workspaces_travel(homes, url):
    one, two, _ = homes
    one.say("open", workspace="shop")
    one.say("closed", workspace="diary")
    one.sync.remove(SHARED)
    one.sync.add(SHARED, url[0] if isinstance(url, tuple) else url, ["shop"])
    exchange_until_still(one, two)
    assert two.texts("shop") == ["open"]
    assert "diary" not in two.settings.paths.workspace_ids()


def damage(url, how):
    """Damage the newest segment of a remote."""
    storage = ObjectStorage.open(url, RemoteUnreachable)
    path = max(storage.list("segments/"))
    if how == "missing":
        storage.delete([path])
        return
    content = storage.get(path)
    storage.put(path, {"cut": content[: len(content) // 2], "empty": b"", "changed": content[:-9] + b"x" * 9}[how])


@pytest.mark.parametrize("how", ["cut", "empty", "changed", "missing"])
def test_repair_on_the_writing_device_writes_its_damaged_file_again(homes, url, how):
    if isinstance(url, tuple) and how != "cut":
        pytest.skip("a server has no files")
    one, two, three = homes
    one.say("The kiln needs a new fuse")
    exchange_until_still(*homes)
    one.say("The fuse is in the blue box")
    one.exchange()
    if isinstance(url, tuple):
        # The server lost what it received.
        store = url[1].database()
        with store.write() as db:
            gone = "(SELECT id FROM memory WHERE content = 'The fuse is in the blue box')"
            db.execute(f"DELETE FROM operation WHERE memory_id IN {gone}")
            db.execute(f"DELETE FROM memory WHERE id IN {gone}")
            db.execute("DELETE FROM touched")
    else:
        damage(url, how)
    two.exchange()
    assert two.texts() == ["The kiln needs a new fuse"]
    two.sync.repair()
    assert two.texts() == ["The kiln needs a new fuse"]
    counts = one.sync.repair()
    assert counts.get(f"files on {SHARED}") == (None if isinstance(url, tuple) else 1)
    exchange_until_still(*homes)
    for home in (two, three):
        assert home.texts() == ["The fuse is in the blue box", "The kiln needs a new fuse"]
    assert f"files on {SHARED}" not in one.sync.repair()
    three.say("Ask Mara about the fuse")
    exchange_until_still(*homes)
    assert one.texts() == two.texts() == three.texts()
