"""An encrypted home under a stack of real processes: killed while it writes or is encrypted, and without its key."""

import contextlib
import http.client
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pipeline.features.encryption.usecases import choose_key, decrypt_home, describe_encryption, encrypt_home
from pipeline.features.snapshots.job import take_snapshot
from pipeline.kernel.records import Draft
from pipeline.kernel.store import backup, driver, encryption
from pipeline.kernel.store.driver import PLAIN
from pipeline.kernel.store.sqlite import SqliteDatabase
from pipeline.write.accept import accept
from tests.fakes.in_process import PROFILE, accept_batch, fast_settings
from tests.support.killed import run_until_killed
from tests.support.stack import ROOT, wait_until

pytestmark = pytest.mark.timeout(600)

FIRST = [f"The quagga number {n} grazes at dawn" for n in range(300)]


@pytest.fixture
def paths(tmp_path):
    paths = fast_settings(tmp_path / "home").paths
    paths.root.mkdir(mode=0o700)
    with contextlib.closing(SqliteDatabase(paths.workspace("default").events, PROFILE, create=True)) as database:
        accept_batch(database, [Draft(text) for text in FIRST])
    return paths


def run(stack, *arguments):
    """Run a command on a stack's home; none may end in a traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "web.cli", *arguments],
        cwd=ROOT,
        env=stack.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def contents(file):
    with contextlib.closing(driver.connect(file)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return {row[0] for row in db.execute("SELECT content FROM memory")}


def is_plain_anywhere(paths, text):
    beside = [file for file in paths.root.glob("*.sqlite*") if not file.name.startswith("queue.")]
    files = [*paths.workspaces.rglob("*.sqlite*"), *beside]
    assert files
    return [file for file in files for part in (text.encode(), PLAIN[:-1]) if part in file.read_bytes()]


def test_a_kill_during_writes_loses_nothing_and_leaves_nothing_plain(make_stack, paths, key_file):
    choose_key(paths, key_file)
    encrypt_home(paths)
    stack = make_stack(paths.root)
    acknowledged = []

    def write():
        with (
            contextlib.closing(stack.client()) as client,
            contextlib.suppress(OSError, http.client.HTTPException),
        ):
            while True:
                text = f"Written under way, number {len(acknowledged)}: the quagga sleeps"
                client.remember(text)
                acknowledged.append(text)

    for _ in range(3):
        stack.start("web", "worker", "scheduler")
        before = len(acknowledged)
        writer = threading.Thread(target=write)
        writer.start()
        wait_until("some are written", lambda before=before: len(acknowledged) >= before + 40)
        for name in ("web", "worker"):
            stack.kill(name, with_children=True)
        writer.join()
        stack.stop()
    assert contents(paths.workspace("default").events) >= {*FIRST, *acknowledged}
    stack.start("web", "worker", "scheduler")
    with contextlib.closing(stack.client()) as client:
        stack.wait_until_digested(client)
        assert "quagga" in client.recall("where does the quagga sleep")["results"][0]["content"]
    assert run(stack, "-w", "default", "store", "snapshot", "take").returncode == 0
    refused = run(stack, "store", "decrypt")
    assert (refused.returncode, "reverie down" in refused.stderr) == (1, True)
    assert is_plain_anywhere(paths, "quagga") == []
    stack.stop()
    assert is_plain_anywhere(paths, "quagga") == []
    files = [file for file in paths.root.rglob("*") if file.is_file()]
    assert [file for file in files if b"quagga" in file.read_bytes().lower()] == []


def test_without_the_key_every_answer_names_it(make_stack, paths, key_file):
    stack = make_stack(paths.root)
    assert run(stack, "store", "encrypt", "--key-file", str(key_file)).returncode == 0
    assert run(stack, "store", "snapshot", "take", "-w", "default").returncode == 0
    away = key_file.rename(key_file.with_suffix(".away"))
    before = paths.workspace("default").events.read_bytes()
    stack.start("web", "worker", "scheduler")
    with contextlib.closing(stack.client()) as client, contextlib.closing(stack.client("new")) as another:
        for one in (client, another):
            reply = one.call("POST", "/v1/memories", {"content": "The quagga is back"})
            assert (reply.status, str(key_file) in reply.body["detail"]) == (503, True), reply
            assert reply.headers["Content-Type"] == "application/problem+json"
        assert client.call("POST", "/v1/recall", {"query": "quagga"}).status == 503
        for arguments, code in (
            (("status",), 4),
            (("doctor",), 1),
            (("store", "snapshot", "list", "-w", "default"), 4),
            (("store", "snapshot", "take", "-w", "default"), 4),
            (("export", str(key_file.with_name("bundle")), "-w", "default"), 4),
            (("sync", "invite"), 4),
            (("recall", "quagga", "-w", "default"), 4),
        ):
            done = run(stack, *arguments)
            assert (done.returncode, str(key_file) in done.stdout + done.stderr) == (code, True), (arguments, done)
        assert paths.workspace("default").events.read_bytes() == before
        assert not list(paths.workspaces.rglob("before-*"))
        assert not paths.workspace("new").events.exists()
        away.rename(key_file)
        # What waited goes on by itself.
        stack.wait_until_digested(client)
        assert "quagga" in client.recall("quagga")["results"][0]["content"]
        client.remember("The quagga is back")
        assert f"{paths.root}, encrypted" in run(stack, "status").stdout
        assert f"ok    encryption: by the key in {key_file}" in run(stack, "doctor").stdout
    stack.stop()
    assert contents(paths.workspace("default").events) == {*FIRST, "The quagga is back"}
    assert is_plain_anywhere(paths, "quagga") == []


def list_locks(file):
    """List the locks that any process has on a file, as Linux tells."""
    locks = [line.split()[1:] for line in Path("/proc/locks").read_text().splitlines()]
    return [lock for lock in locks if lock[4].endswith(f":{file.stat().st_ino}")]


def test_a_process_that_opens_a_file_once_more_keeps_its_locks_on_it(make_stack, paths, key_file):
    """Otherwise another process would exchange the store under it."""
    choose_key(paths, key_file)
    encrypt_home(paths)
    stack, events = make_stack(paths.root), paths.workspace("default").events
    with contextlib.closing(SqliteDatabase(events, PROFILE, create=False)) as database:
        accept(database, Draft("The quagga is watched"))
        held = list_locks(events)
        assert held
        assert backup.count_memories(events) == len(FIRST) + 1
        assert list_locks(events) == held
        done = run(stack, "store", "decrypt")
        assert (done.returncode, "in use" in done.stderr or "process uses" in done.stderr) == (1, True), done
    assert run(stack, "store", "decrypt").returncode == 0


KILLED = """
import sys, threading
from pathlib import Path
from config.paths import HomePaths
from pipeline.features.encryption.usecases import choose_key, decrypt_home, encrypt_home
from pipeline.kernel.store import backup, driver, encryption, key

paths, key_file, way, place = HomePaths(Path(sys.argv[1])), Path(sys.argv[2]), *sys.argv[3:]
module = {"write_key_record": key, "make_key": key, "convert": encryption, "export": driver}.get(place, backup)
real, skipped = getattr(module, place), iter(range(place == "convert"))

def hang(*given):
    if next(skipped, None) is not None:
        return real(*given)
    if place in ("export", "publish", "write_key_record", "make_key"):
        real(*given)
    print("here", flush=True)
    threading.Event().wait()

setattr(module, place, hang)
if way == "encrypt":
    choose_key(paths, key_file)
    encrypt_home(paths)
else:
    decrypt_home(paths)
"""


PLACES = ["settle", "export", "replace_store_file", "publish", "convert"]
KILLS = [
    *(("encrypt", place) for place in ("make_key", "write_key_record", *PLACES)),
    *(("decrypt", place) for place in PLACES),
]


@pytest.mark.parametrize(("way", "place"), KILLS)
def test_an_interrupted_encryption_loses_nothing_and_is_completed(paths, key_file, way, place):
    take_snapshot(paths.workspace("default"), datetime.now(UTC))
    if way == "decrypt":
        choose_key(paths, key_file)
        encrypt_home(paths)
    run_until_killed(KILLED, str(paths.root), str(key_file), way, place)
    assert all(contents(file) == set(FIRST) for file in encryption.list_all(paths))
    with contextlib.closing(SqliteDatabase(paths.workspace("default").events, PROFILE, create=False)) as database:
        accept(database, Draft("Written in between"))
    if way == "encrypt":
        choose_key(paths, key_file)
    assert (encrypt_home if way == "encrypt" else decrypt_home)(paths).left == []
    assert contents(paths.workspace("default").events) == {*FIRST, "Written in between"}
    assert not list(paths.root.rglob("*partial*"))
    assert describe_encryption(paths).is_encrypted is (way == "encrypt")
    if way == "encrypt":
        assert is_plain_anywhere(paths, "quagga") == []
    else:
        assert all(driver.is_plain(file) for file in encryption.list_all(paths))
