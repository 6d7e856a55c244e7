import os

import pytest

from pipeline.features.sync.clock import LISTEN_S, SyncClock
from tests.fakes.homes import Home


class Now:
    def __init__(self):
        self.at = 0.0

    def __call__(self):
        return self.at


@pytest.fixture
def home(tmp_path):
    made = Home(tmp_path / "home")
    yield made
    made.close()


def test_sync_without_other_devices_is_never_due(home):
    assert not SyncClock(home.sync.peers, home.container.databases).is_due()


def test_it_is_due_when_something_came_into_a_folder(home, tmp_path):
    home.sync.add("disk", f"dir:{tmp_path}/shared")
    clock = SyncClock(home.sync.peers, home.container.databases, Now())
    assert clock.is_due()
    stream = tmp_path / "shared" / "segments" / "ab"
    stream.mkdir(parents=True)
    assert clock.is_due()
    assert not clock.is_due()
    (stream / "a").touch()
    os.utime(stream, ns=(1, 1))
    assert clock.is_due()
    home.sync.remove("disk")
    (stream / "b").touch()
    assert not clock.is_due()


def test_unreadable_state_makes_the_exchange_due(home, tmp_path):
    home.sync.add("disk", f"dir:{tmp_path}/shared")
    home.settings.paths.home.write_bytes(b"no database" * 100)
    now = Now()
    clock = SyncClock(home.sync.peers, home.container.databases, now)
    assert clock.is_due()
    assert not clock.is_due()
    now.at += LISTEN_S + 1
    assert clock.is_due()


def test_it_is_due_at_the_start_after_a_write_and_now_and_then(home, tmp_path):
    home.sync.add("disk", f"dir:{tmp_path}/shared")
    home.say("something")
    now = Now()
    clock = SyncClock(home.sync.peers, home.container.databases, now)
    assert clock.is_due()
    assert not clock.is_due()
    home.say("something else")
    log = f"{home.settings.paths.workspace('default').events}-wal"
    os.utime(log, ns=(1, 1))
    assert clock.is_due()
    now.at += LISTEN_S - 1
    assert not clock.is_due()
    now.at += 2
    assert clock.is_due()
    assert not clock.is_due()
