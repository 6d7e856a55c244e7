"""A hook client that meets a server with other code restarts it at most once per pair, and never in a loop."""

import os
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from tests.fakes.in_process import scratch_folder
from web.hooks import client, version_skew
from web.hooks.version_skew import (
    MOST_PAIRS,
    NOTED,
    PAIR_S,
    RESTART_S,
    RESTARTED,
    SKEW,
    describe_skews,
    heal_skew,
    list_skews,
)
from web.stack import detached

HERE, THERE = "aaaaaaaaaaaa", "bbbbbbbbbbbb"
OLD, NEW, OTHER = f"{HERE}-1", f"{HERE}-2", f"{THERE}-1"
DAY_S = 86_400.0


class Clock:
    """A clock that only this test moves."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(version_skew, "time", clock)
    return clock


@pytest.fixture
def started(monkeypatch):
    """The commands that were started instead of running."""
    commands = []
    monkeypatch.setattr(
        detached, "start_detached", lambda command, variables, **_: commands.append((command, variables))
    )
    return commands


def test_a_server_of_older_code_is_restarted_once(tmp_path, clock, started):
    assert heal_skew(str(tmp_path), OLD, NEW, {"REVERIE_PORT": "7078"}) == RESTARTED
    [(command, variables)] = started
    assert command == [sys.executable, "-I", "-m", "web.cli", "up", "--daemon", "--replace"]
    assert variables == {"REVERIE_PORT": "7078", "REVERIE_HOME": str(tmp_path)}
    for _ in range(100):
        clock.now += DAY_S / 101
        assert heal_skew(str(tmp_path), OLD, NEW, {}) == ""
    assert len(started) == 1
    assert (tmp_path / SKEW).stat().st_mode & 0o777 == 0o600


def test_a_server_without_a_build_is_older(tmp_path, started):
    assert heal_skew(str(tmp_path), "", NEW, {}) == RESTARTED
    assert len(started) == 1


def test_a_server_of_another_installation_is_noted_and_left(tmp_path, clock, started):
    assert heal_skew(str(tmp_path), OTHER, NEW, {}) == NOTED
    assert heal_skew(str(tmp_path), OTHER, NEW, {}) == ""
    assert started == []
    [says] = describe_skews(str(tmp_path), OTHER)
    program = Path(sys.executable).parent / "reverie"
    assert f"`{program} up --daemon`" in says
    assert describe_skews(str(tmp_path), NEW) == []


def test_nothing_is_restarted_while_the_stack_starts(tmp_path, started):
    held = client.take_lock(str(tmp_path), client.START_LOCK)
    assert heal_skew(str(tmp_path), OLD, NEW, {}) == ""
    os.close(held)
    assert (started, list_skews(str(tmp_path))) == ([], [])


def test_a_restart_that_cannot_be_recorded_is_not_made(tmp_path, started):
    (tmp_path / SKEW).mkdir()
    assert heal_skew(str(tmp_path), OLD, NEW, {}) == ""
    assert started == []


def test_lines_that_cannot_be_read_are_skipped(tmp_path, clock, started):
    (tmp_path / SKEW).write_bytes(b"\xff\n1 restarted\nyesterday restarted a b c\n\n")
    assert list_skews(str(tmp_path)) == []
    assert heal_skew(str(tmp_path), OLD, NEW, {}) == RESTARTED


builds = st.builds("{}-{:x}".format, st.sampled_from([HERE, THERE]), st.integers(0, 5))
meetings = st.lists(st.tuples(builds, builds, st.sampled_from([0.0, 1.0, 60.0, RESTART_S, 7_000.0])), max_size=60)


@given(meetings)
def test_no_sequence_of_builds_makes_a_loop(meetings):
    restarts, notes = [], []
    with scratch_folder() as home, pytest.MonkeyPatch.context() as patch:
        clock = Clock()
        patch.setattr(version_skew, "time", clock)
        patch.setattr(detached, "start_detached", lambda *_, **__: None)
        for server, build, waits in meetings:
            clock.now += waits
            done = heal_skew(str(home), server, build, {})
            if done == RESTARTED:
                restarts.append((clock.now, server, build))
            elif done == NOTED:
                notes.append((clock.now, server, build))
    assert all(server[:12] == build[:12] for _, server, build in restarts)
    assert all(later[0] - earlier[0] >= RESTART_S for earlier, later in pairwise(restarts))
    acts = sorted(restarts + notes)
    for number, (at, *pair) in enumerate(acts):
        recent = [other for other in acts[:number] if at - other[0] < PAIR_S]
        assert len(recent) < MOST_PAIRS
        assert pair not in [list(other[1:]) for other in recent]


def test_a_client_that_always_differs_restarts_the_server_a_few_times_a_day(tmp_path, clock, started):
    for number in range(2000):
        clock.now += DAY_S / 2000
        heal_skew(str(tmp_path), f"{HERE}-{number:x}a", f"{HERE}-{number:x}b", {})
    assert len(started) == MOST_PAIRS
