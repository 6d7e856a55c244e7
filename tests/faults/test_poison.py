"""A memory that cannot be digested, or kills whoever tries, ends as a dead letter and takes no other one along."""

import multiprocessing
import os
import signal
import sqlite3
import threading
import time
from collections import Counter

import pytest

from pipeline.bootstrap import mask
from pipeline.features.entities.stage import EntitiesStage
from pipeline.features.indexing.stage import EmbedStage
from pipeline.index.vectors import VectorTable
from pipeline.kernel.errors import IndexUnavailable
from pipeline.kernel.job_runs import reap
from pipeline.kernel.records import Draft, Stage
from pipeline.kernel.stage_loop import DigestPolicy, digest
from pipeline.kernel.store import memories, work
from pipeline.kernel.store.database import WriterProfile
from pipeline.kernel.store.home_file import HomeFile
from pipeline.kernel.store.operations import Operations
from pipeline.kernel.store.sqlite import SqliteDatabase
from tests.fakes.encoder import HashEncoder
from tests.fakes.in_process import accept_batch
from tests.fakes.tagger import FakeTagger
from tests.support.stack import wait_until

PROFILE = WriterProfile("NORMAL", 1000, 5000)
POLICY = DigestPolicy(batch=16, lease_s=60, backoff_s=0.01)
SECRET_WORDS = "arsenic in the tea"
POISON = f"The butler put {SECRET_WORDS}."
INNOCENT = [f"Dinner number {n} was served with Grace Hopper." for n in range(10)]
# These children only claim, and end by os.kill or by themselves: they touch no lock of another thread.
pytestmark = pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
fork = multiprocessing.get_context("fork")


@pytest.fixture
def file(tmp_path):
    return tmp_path / "events.sqlite"


@pytest.fixture
def database(file):
    database = SqliteDatabase(file, PROFILE, create=True)
    yield database
    database.close()


@pytest.fixture
def journal(tmp_path):
    return Operations(HomeFile(tmp_path / "home.sqlite"), mask)


@pytest.fixture
def poisoned(database):
    """Ten innocent memories with a poisonous one in their middle; its row number."""
    contents = [*INNOCENT[:5], POISON, *INNOCENT[5:]]
    accept_batch(database, [Draft(content) for content in contents])
    return seq_of(database, POISON)


def seq_of(database, content):
    with database.read() as db:
        return db.execute("SELECT seq FROM memory WHERE content = ?", (content,)).fetchone()[0]


class Runner:
    """Completes what it is given, and counts the completions that took effect; one content makes it fail."""

    def __init__(self, database, fail=None):
        self.database = database
        self.fail = fail
        self.took_effect = Counter()

    def load(self):
        """Nothing to load."""

    def run(self, items, owner):
        with self.database.read() as db:
            found = memories.by_seqs(db, [item.seq for item in items])
        if self.fail is not None and any(memory.content == POISON for memory in found.values()):
            self.fail()
        with self.database.write() as db:
            self.took_effect.update(item.seq for item in work.complete(db, items, owner))


def raise_value_error():
    raise ValueError("cannot be tagged")


def turn(database, runner, owner="one", log=print, stage=Stage.ENTITIES, policy=POLICY):
    return digest(database, stage, runner, owner, policy, log, time.monotonic() + 30)


def turns_until_settled(database, runner, log=print):
    def settled():
        turn(database, runner, log=log)
        return counts(database)[0] == 0

    wait_until("nothing is pending", settled)


def counts(database):
    with database.read() as db:
        return work.count_pending(db)[Stage.ENTITIES], work.count_dead(db)[Stage.ENTITIES]


def test_only_the_guilty_memory_becomes_a_dead_letter(database, poisoned, journal):
    runner = Runner(database, raise_value_error)
    turn(database, runner, log=journal_log(journal))
    assert len(runner.took_effect) == 10  # one bad memory in a batch, and the first turn does all others
    turns_until_settled(database, runner, journal_log(journal))
    assert counts(database) == (0, 1)
    with database.read() as db:
        letter = work.list_dead_letters(db, 10)[0]
    assert (letter.memory_seq, letter.stage) == (poisoned, Stage.ENTITIES)
    assert "cannot be tagged" in letter.error
    assert poisoned not in runner.took_effect


def journal_log(journal):
    return lambda message: journal.record_error("digest.entities", message, workspace="default")


def test_a_dead_letter_had_five_tries(database, poisoned):
    tried = Counter()

    def count_and_fail():
        tried["poison"] += 1
        raise_value_error()

    # Alone from the start: a failing batch is taken apart, which is no try of its own.
    runner = Runner(database, count_and_fail)
    turns_until_settled(database, runner)
    assert tried["poison"] == work.MAX_ATTEMPTS + 1  # the first try is made twice: in its batch, then alone
    assert counts(database) == (0, 1)


def test_a_dead_letter_comes_back_by_retry(database, poisoned):
    turns_until_settled(database, Runner(database, raise_value_error))
    turn(database, Runner(database))
    assert counts(database) == (0, 1)  # a dead letter is not claimed by itself
    with database.write() as db:
        assert work.retry(db, Stage.ENTITIES) == 1
    cured = Runner(database)
    turn(database, cured)
    assert cured.took_effect == {poisoned: 1}
    assert counts(database) == (0, 0)


def test_the_error_log_names_the_memory_without_its_text(database, poisoned, journal, tmp_path):
    turns_until_settled(database, Runner(database, raise_value_error), journal_log(journal))
    lines = [error.message for error in journal.errors(workspace="default", limit=50)]
    assert len(lines) == work.MAX_ATTEMPTS
    assert all(f"memory {poisoned}" in line for line in lines)
    assert "dead letter" in lines[0]
    assert not any("arsenic" in line for line in lines)
    assert not any(b"arsenic" in file.read_bytes() for file in tmp_path.glob("home.sqlite*"))


def test_broken_surroundings_cost_no_memory_a_try(database, poisoned):
    def broken():
        raise IndexUnavailable("the vectors are gone")

    for _ in range(2 * work.MAX_ATTEMPTS):
        with pytest.raises(IndexUnavailable):
            turn(database, Runner(database, broken))
    assert counts(database) == (11, 0)
    turn(database, Runner(database))
    assert counts(database) == (0, 0)


def die_over_poison(file, owner, done):
    """Digest in a process of its own; the poison kills it."""
    database = SqliteDatabase(file, PROFILE, create=False)
    runner = Runner(database, lambda: os.kill(os.getpid(), signal.SIGKILL))
    turn(database, runner, owner)
    done.put(sorted(runner.took_effect))


def test_a_memory_that_kills_its_worker_is_dead_after_five_deaths(file, poisoned, database):
    deaths = 0
    for number in range(2 * work.MAX_ATTEMPTS):
        owner = f"worker-{number}"
        child = fork.Process(target=die_over_poison, args=(file, owner, fork.SimpleQueue()))
        child.start()
        child.join(30)
        deaths += child.exitcode == -signal.SIGKILL
        # The sweep finds the holder gone and frees what it held.
        reap(database, lambda holder, dead=owner: holder != dead)
        if counts(database)[0] == 0:
            break
    assert deaths == work.MAX_ATTEMPTS
    assert counts(database) == (0, 1)
    with database.read() as db:
        letter = work.list_dead_letters(db, 10)[0]
    assert letter.memory_seq == poisoned
    assert "ended without an answer" in letter.error


def test_innocents_wait_for_the_first_death_and_a_few_for_the_second(file, poisoned, database):
    for owner in ("worker-0", "worker-1"):
        child = fork.Process(target=die_over_poison, args=(file, owner, fork.SimpleQueue()))
        child.start()
        child.join(30)
        reap(database, lambda holder, dead=owner: holder != dead)
    # The second worker claims two at a time: those before the poison are done, but for the one beside it.
    with database.read() as db:
        left = {row[0] for row in db.execute("SELECT memory_seq FROM work WHERE stage = ?", (Stage.ENTITIES,))}
    assert poisoned in left
    assert len(left) <= 7
    child = fork.Process(target=die_over_poison, args=(file, "worker-2", fork.SimpleQueue()))
    child.start()
    child.join(30)
    assert counts(database)[0] <= 6


def test_two_digesters_side_by_side_do_each_memory_once(file, database):
    accept_batch(database, [Draft(f"Meal {n} with Ada Byron.") for n in range(400)])
    mine = [SqliteDatabase(file, PROFILE, create=False) for _ in range(4)]
    runners = [Runner(each) for each in mine]
    policy = DigestPolicy(batch=7, lease_s=60, backoff_s=0.01)
    threads = [
        threading.Thread(target=turn, args=(each, runner, f"owner-{n}"), kwargs={"policy": policy})
        for n, (each, runner) in enumerate(zip(mine, runners, strict=True))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for each in mine:
        each.close()
    effects = sum((runner.took_effect for runner in runners), Counter())
    assert len(effects) == 400
    assert set(effects.values()) == {1}
    assert counts(database) == (0, 0)


def digest_both_stages(file, folder, number):
    database = SqliteDatabase(file, PROFILE, create=False)
    encoder = HashEncoder()
    table = VectorTable(folder, "hash", encoder.dimension)
    policy = DigestPolicy(batch=20, lease_s=60, backoff_s=0.01)
    embed = EmbedStage(database, lambda _encoder: table, lambda: encoder)
    link = EntitiesStage(database, FakeTagger)
    for stage, runner in ((Stage.EMBED, embed), (Stage.ENTITIES, link)):
        turn(database, runner, f"process-{number}", stage=stage, policy=policy)


def test_two_processes_on_one_workspace_leave_one_vector_and_one_link_each(file, database, tmp_path):
    accept_batch(database, [Draft(f"Meal {n} with Ada Byron at Acme near Paris.") for n in range(120)])
    spawn = multiprocessing.get_context("spawn")
    folder = tmp_path / "vectors.lance"
    children = [spawn.Process(target=digest_both_stages, args=(file, folder, n)) for n in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join(90)
    assert [child.exitcode for child in children] == [0, 0]
    seqs = Counter(VectorTable(folder, "hash", HashEncoder().dimension).read_codes(None, 10_000).seqs.tolist())
    assert len(seqs) == 120
    assert set(seqs.values()) == {1}
    with sqlite3.connect(file) as db:
        # Each was embedded once, so each waits once to be compared.
        assert db.execute("SELECT stage, count(*) FROM work GROUP BY stage").fetchall() == [("dedup", 120)]
    db.close()


class Late:
    """A worker that loses its lease while it works: someone else finishes first."""

    def __init__(self, runner, meanwhile):
        self.runner = runner
        self.meanwhile = meanwhile

    def load(self):
        """Nothing to load."""

    def run(self, items, owner):
        self.meanwhile()
        self.runner.run(items, owner)


def test_worker_that_lost_the_lease_completes_no_work(database, poisoned):
    first, second = Runner(database), Runner(database)

    def lease_runs_out_and_another_takes_over():
        with database.write() as db:
            assert work.expire(db, "slow") == 11
        turn(database, second, "quick")

    turn(database, Late(first, lease_runs_out_and_another_takes_over), "slow")
    assert len(second.took_effect) == 11
    assert not first.took_effect


def test_late_failure_after_a_lost_lease_changes_nothing(database, poisoned):
    second = Runner(database)

    def another_takes_over_then_fail():
        with database.write() as db:
            work.expire(db, "slow")
        turn(database, second, "quick")
        raise_value_error()

    turn(database, Late(Runner(database), another_takes_over_then_fail), "slow")
    assert len(second.took_effect) == 11
    assert counts(database) == (0, 0)


def test_expired_lease_goes_to_another_worker_automatically(database, poisoned):
    brief = DigestPolicy(batch=16, lease_s=0, backoff_s=0.01)
    with database.write() as db:
        held = work.claim(db, Stage.ENTITIES, "gone", limit=16, lease_s=brief.lease_s, now=time.time())
    assert len(held) == 11
    heir = Runner(database)
    turn(database, heir, "heir")
    assert len(heir.took_effect) == 11
    with database.write() as db:
        assert work.complete(db, held, "gone") == []


def test_an_edit_while_a_memory_is_worked_on_is_digested_again(database, poisoned):
    def edited():
        with database.write() as db:
            work.add(db, [poisoned], [Stage.ENTITIES], time.time())

    slow = Runner(database)
    report = turn(database, Late(slow, iter_once(edited)), "slow")
    assert slow.took_effect[poisoned] == 1
    assert report.claimed == 12
    assert counts(database) == (0, 0)


def iter_once(act):
    """Act at the first call only."""
    todo = [act]
    return lambda: todo.pop()() if todo else None
