"""Several processes write one table on object storage: nothing is lost, nothing doubled, also where one is killed."""

import os
import subprocess
import sys
import uuid

import numpy as np
import pytest

from pipeline.index.codes import PassageCodes
from pipeline.kernel.errors import StoreBusy
from pipeline.kernel.store.home_values import workspace_values
from pipeline.kernel.store.leases import Lease, hold
from pipeline.kernel.store.sqlite import SqliteDatabase
from tests.contract.vector_writer import open_shared, vectors_of
from tests.fakes.in_process import PROFILE
from tests.support.stack import wait_until

BUCKET, COUNT = "writers", 25


@pytest.fixture(scope="module")
def bucket(s3):
    s3.make_bucket(BUCKET)
    return s3


@pytest.fixture
def url(bucket, monkeypatch):
    for name, value in bucket.environment.items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"


@pytest.fixture
def database(tmp_path):
    database = SqliteDatabase(tmp_path / "events.sqlite", PROFILE, create=True)
    yield database
    database.close()


@pytest.fixture
def start_writer(database, url):
    started = []

    def start(first):
        command = [
            sys.executable,
            "-m",
            "tests.contract.vector_writer",
            str(database.file),
            url,
            str(first),
            str(COUNT),
        ]
        started.append(subprocess.Popen(command, env=dict(os.environ)))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def held_by(table):
    rows = table.vectors(sorted(table.seqs()))
    order = np.argsort(rows.seqs, kind="stable")
    return rows.seqs[order].tolist()


def assert_whole(table, seqs):
    expected = [seq for seq in sorted(seqs) for _ in vectors_of(seq)]
    assert held_by(table) == expected
    codes = table.read_codes(None, 10_000).latest()
    wanted = PassageCodes.of(np.array(expected), np.concatenate([vectors_of(seq) for seq in sorted(seqs)]))
    order = np.argsort(codes.seqs, kind="stable")
    assert codes.seqs[order].tolist() == wanted.seqs.tolist()
    assert (codes.codes[order] == wanted.codes).all()


def test_writers_in_two_processes_lose_and_double_nothing(start_writer, database, url, tmp_path):
    writers = [start_writer(first) for first in (1, 101)]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0]
    assert_whole(open_shared(tmp_path / "reader", database, url), {0, *range(1, 1 + COUNT), *range(101, 101 + COUNT)})


def test_after_a_writer_was_killed_the_next_one_goes_on(start_writer, database, url, tmp_path, monkeypatch):
    table = open_shared(tmp_path / "reader", database, url)
    victim = start_writer(1)
    wait_until("something is written", lambda: table.exists() and table.count() > 9)
    victim.kill()
    victim.wait()
    # A lease of its own time would have the test wait for it.
    with database.write() as db:
        db.execute("UPDATE meta SET value = '0 ' || substr(value, instr(value, ' ') + 1) WHERE key = 'lease.vectors'")
    # What was claimed and not done is done again, whatever of it was written.
    assert start_writer(1).wait(timeout=120) == 0
    assert_whole(table, {0, *range(1, 1 + COUNT)})


def test_lease_has_a_single_holder_until_release(database):
    first, second = (Lease(workspace_values(database), "work") for _ in range(2))
    assert first.take()
    assert first.take()
    assert not second.take()
    first.release_lease()
    assert second.take()


def test_expired_lease_goes_to_another_holder_and_its_writer_is_rejected(database, url, tmp_path):
    table = open_shared(tmp_path / "late", database, url)
    with table.exclusive():
        table.replace({1: vectors_of(1)})
        table._place._held._until = 0.0
        with pytest.raises(StoreBusy):
            table.replace({2: vectors_of(2)})
    assert table.seqs() == {1}


def test_a_lease_is_renewed_for_as_long_as_it_is_held(database):
    values = workspace_values(database)
    with hold(database, "work", lease_s=0.3) as lease:
        began = lease._until
        wait_until("it was renewed", lambda: lease._until > began + 0.3)
        assert not Lease(values, "work").take()
    assert Lease(values, "work").take()
