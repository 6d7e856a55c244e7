"""An exchange that is broken off anywhere, by a kill or a full disk, goes on where it stopped and loses nothing."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from pipeline.kernel.errors import ReverieError
from pipeline.kernel.records import Draft, Revision
from pipeline.write import revise
from tests.fakes.homes import SHARED, Home, exchange_until_still, pair
from tests.fakes.in_process import accept_batch
from tests.support.disks import mounted
from tests.support.stack import ROOT

pytestmark = pytest.mark.timeout(600)

MEMORIES = 1500
KILLS = 5
SMALL, LARGE = "size=200k", "size=64m"


@pytest.fixture
def homes(tmp_path):
    made = [Home(tmp_path / name) for name in ("one", "two")]
    yield made
    for home in made:
        home.close()


def say_all(home, texts):
    """Keep memories in one transaction and return their ids."""
    return [receipt.id for receipt in accept_batch(home.database(), [Draft(text) for text in texts])]


def start_exchange(home):
    environment = {**os.environ, "REVERIE_HOME": str(home.root), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "web.cli", "sync", "now", "--json"]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def test_sync_kills_neither_lose_nor_duplicate_memories(homes, tmp_path):
    one, two = homes
    pair(one, two, url=f"dir:{tmp_path}/shared")
    ids = say_all(one, (f"memory number {number} stands on its own {number * 7}" for number in range(MEMORIES)))
    choice = random.Random(7)
    for _ in range(KILLS):
        for home in homes:
            process = start_exchange(home)
            # Longer than the start of the command, shorter than a whole exchange mostly.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(choice.uniform(0.3, 1.2))
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        revise.edit(one.database(), choice.choice(ids), Revision(pinned=True))
        two.say(f"written between two kills at {time.time_ns()}")
    exchange_until_still(one, two)
    assert one.texts() == two.texts()
    assert len(one.texts()) == MEMORIES + KILLS
    assert one.sync.repair() == {f"remote {SHARED}": 0, "workspace default": 0}


@pytest.mark.skipif(os.name != "posix", reason="mounts are POSIX's")
def test_full_sync_remote_is_reported_and_sync_resumes_when_enlarged(homes, tmp_path):
    one, two = homes
    folder = tmp_path / "disk"
    folder.mkdir()
    with mounted(folder, SMALL):
        pair(one, two, url=f"dir:{folder}/shared")
        bits = random.Random(7).getrandbits
        say_all(one, (f"memory number {number} says {bits(256):x}" for number in range(MEMORIES * 2)))
        with pytest.raises(ReverieError, match="cannot be used"):
            one.exchange()
        assert one.sync.status()[0].error
        subprocess.run(["mount", "-o", f"remount,{LARGE}", str(folder)], check=True)
        exchange_until_still(one, two)
        assert two.texts() == one.texts()
        assert one.sync.status()[0].error is None


@pytest.mark.skipif(os.name != "posix", reason="mounts are POSIX's")
def test_full_data_directory_syncs_the_rest_after_enlargement(homes, tmp_path):
    one, _ = homes
    folder = tmp_path / "disk"
    folder.mkdir()
    one.sync.add(SHARED, f"dir:{tmp_path}/shared")
    bits = random.Random(7).getrandbits
    say_all(one, (f"memory number {number} says {bits(512):x}" for number in range(MEMORIES)))
    one.exchange()
    with mounted(folder, "size=1500k"):
        small = Home(folder / "home")
        try:
            small.sync.join(one.sync.invite())
            small.sync.add(SHARED, f"dir:{tmp_path}/shared")
            with pytest.raises(ReverieError):
                small.exchange()
            subprocess.run(["mount", "-o", f"remount,{LARGE}", str(folder)], check=True)
            exchange_until_still(small, one)
            assert small.texts() == one.texts()
        finally:
            small.close()
