"""The work table against a model: nothing is lost, held twice, or tried without end."""

from contextlib import ExitStack

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from pipeline.kernel.records import Stage
from pipeline.kernel.records.digestion import WorkItem
from pipeline.kernel.store import work
from tests.fakes.in_process import scratch_database
from tests.fakes.job_runs import text_of, write
from tests.fakes.properties import opens_stores

LEASE_S = 100.0
BACKOFF_S = 8.0
OWNERS = ("anna", "bert", "cleo")
SEQS = range(1, 7)

stages = st.sampled_from([Stage.EMBED, Stage.ENTITIES])
owners = st.sampled_from(OWNERS)


class Row:
    """What the model knows of an item."""

    def __init__(self):
        self.attempts = 0
        self.not_before = 0.0
        self.owner = None
        self.lease_until = 0.0
        self.dead = False

    def is_ready(self, now):
        return not self.dead and self.not_before <= now and (self.owner is None or self.lease_until <= now)

    def release(self):
        self.owner, self.lease_until = None, 0.0


class WorkTable(RuleBasedStateMachine):
    claims = Bundle("claims")

    def __init__(self):
        super().__init__()
        self._open = ExitStack()
        self.database = self._open.enter_context(scratch_database())
        self.rows = {}
        self.now = 1_000_000.0

    def teardown(self):
        self._open.close()

    @rule(seqs=st.lists(st.sampled_from(SEQS), max_size=4), stage=stages)
    def add(self, seqs, stage):
        with self.database.write() as db:
            work.add(db, seqs, [stage], self.now)
        for seq in seqs:
            self.rows[stage, seq] = Row()

    @rule(seconds=st.sampled_from([0.5, BACKOFF_S, 5 * BACKOFF_S, LEASE_S]))
    def time_passes(self, seconds):
        self.now += seconds

    @rule(target=claims, stage=stages, owner=owners, limit=st.integers(1, 4))
    def claim(self, stage, owner, limit):
        with self.database.write() as db:
            items = work.claim(db, stage, owner, limit=limit, lease_s=LEASE_S, now=self.now)
        self.dead_letter_vanished()
        ready = {seq for (s, seq), row in self.rows.items() if s is stage and row.is_ready(self.now)}
        fresh = {seq for seq in ready if self.rows[stage, seq].attempts == 0}
        assert {item.seq for item in items} <= ready
        assert len(items) == (min(limit, len(fresh)) if fresh else min(1, len(ready)))
        for item in items:
            row = self.rows[stage, item.seq]
            row.attempts += 1
            row.owner, row.lease_until = owner, self.now + LEASE_S
            assert item.attempts == row.attempts <= work.MAX_ATTEMPTS
        return multiple(*((owner, item) for item in items))

    @rule(claim=consumes(claims))
    def complete(self, claim):
        owner, item = claim
        with self.database.write() as db:
            done = work.complete(db, [item], owner)
        held = self.is_leased(owner, item)
        assert done == ([item] if held else [])
        if held:
            del self.rows[item.stage, item.seq]

    @rule(claim=consumes(claims))
    def fail(self, claim):
        owner, item = claim
        with self.database.write() as db:
            dead = work.fail(db, item, owner, "broken", backoff_s=BACKOFF_S, now=self.now)
        if self.is_leased(owner, item):
            row = self.rows[item.stage, item.seq]
            row.release()
            row.not_before = self.now + BACKOFF_S * 2 ** (item.attempts - 1)
            row.dead = item.attempts >= work.MAX_ATTEMPTS
            assert dead == row.dead

    @rule(claim=consumes(claims))
    def release(self, claim):
        owner, item = claim
        with self.database.write() as db:
            work.release(db, [item], owner)
        if self.is_leased(owner, item):
            row = self.rows[item.stage, item.seq]
            row.release()
            row.attempts -= 1

    @rule(owner=owners)
    def expire(self, owner):
        with self.database.write() as db:
            count = work.expire(db, owner)
        held = [row for row in self.rows.values() if row.owner == owner]
        assert count == len(held)
        for row in held:
            row.lease_until = 0.0

    @rule()
    def dead_letter(self):
        with self.database.write() as db:
            work.dead_letter_vanished(db, self.now)
        self.dead_letter_vanished()

    @rule(stage=st.none() | stages)
    def retry(self, stage):
        with self.database.write() as db:
            count = work.retry(db, stage)
        dead = [row for (s, _), row in self.rows.items() if row.dead and stage in (None, s)]
        assert count == len(dead)
        for row in dead:
            row.__init__()

    @rule(seq=st.sampled_from(SEQS))
    def drop(self, seq):
        with self.database.write() as db:
            work.drop(db, seq)
        self.rows = {key: row for key, row in self.rows.items() if key[1] != seq}

    def dead_letter_vanished(self):
        for row in self.rows.values():
            if row.owner and row.lease_until <= self.now and row.attempts >= work.MAX_ATTEMPTS:
                row.release()
                row.dead = True

    def is_leased(self, owner, item):
        row = self.rows.get((item.stage, item.seq))
        return row is not None and row.owner == owner

    @invariant()
    def table_is_the_model(self):
        with self.database.read() as db:
            stored = {
                (Stage(stage), seq): (attempts, not_before, owner, dead)
                for stage, seq, attempts, not_before, owner, dead in db.execute(
                    "SELECT stage, memory_seq, attempts, not_before, lease_owner, dead FROM work"
                )
            }
            pending, dead = work.count_pending(db), work.count_dead(db)
            due = set(work.list_due_stages(db, self.now))
            holders = set(work.list_owners(db))
        assert stored == {key: (r.attempts, r.not_before, r.owner, r.dead) for key, r in self.rows.items()}
        for stage in Stage:
            mine = [row for (s, _), row in self.rows.items() if s is stage]
            assert dead[stage] == sum(row.dead for row in mine)
            assert pending[stage] == sum(not row.dead for row in mine)
            assert (stage in due) == any(row.is_ready(self.now) for row in mine)
        assert holders == {row.owner for row in self.rows.values() if row.owner}

    @invariant()
    def attempts_are_limited(self):
        assert all(row.attempts <= work.MAX_ATTEMPTS for row in self.rows.values())


TestWorkTable = WorkTable.TestCase
TestWorkTable.settings = settings(opens_stores, stateful_step_count=40)


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


def claim(database, owner, now, limit=10):
    with database.write() as db:
        return work.claim(db, Stage.EMBED, owner, limit=limit, lease_s=LEASE_S, now=now)


def test_work_failing_five_times_is_dead_lettered_with_its_error(database):
    with database.write() as db:
        work.add(db, [7], [Stage.EMBED], 0.0)
    now, waits = 0.0, []
    for attempt in range(1, work.MAX_ATTEMPTS + 1):
        [item] = claim(database, "anna", now)
        with database.write() as db:
            dead = work.fail(db, item, "anna", f"failure {attempt}", backoff_s=2.0, now=now)
            due = work.find_next_due(db, Stage.EMBED)
        assert dead == (attempt == work.MAX_ATTEMPTS)
        if due is not None:
            waits.append(due - now)
            assert claim(database, "anna", due - 0.01) == []
            now = due
    assert waits == [2.0, 4.0, 8.0, 16.0]
    assert claim(database, "anna", now + 1e9) == []
    with database.read() as db:
        [letter] = work.list_dead_letters(db, 10)
        assert (letter.memory_seq, letter.stage, letter.error, letter.attempts) == (7, Stage.EMBED, "failure 5", 5)


def test_an_item_that_kills_its_worker_each_time_is_a_dead_letter_too(database):
    with database.write() as db:
        work.add(db, [7], [Stage.EMBED], 0.0)
    now = 0.0
    for _ in range(work.MAX_ATTEMPTS):
        assert [item.seq for item in claim(database, "anna", now)] == [7]
        now += LEASE_S
    assert claim(database, "bert", now) == []
    with database.read() as db:
        [letter] = work.list_dead_letters(db, 10)
    assert "ended without an answer" in letter.error


def test_retry_after_a_clock_set_back_is_due_immediately(database):
    day = 86_400.0
    with database.write() as db:
        work.add(db, [1], [Stage.EMBED], 10 * day)
        [item] = work.claim(db, Stage.EMBED, "anna", limit=9, lease_s=LEASE_S, now=10 * day)
        work.fail(db, item, "anna", "late", backoff_s=BACKOFF_S, now=10 * day)
        assert work.claim(db, Stage.EMBED, "anna", limit=9, lease_s=LEASE_S, now=10 * day) == []
        assert work.list_due_stages(db, 9 * day) == [Stage.EMBED]
        assert [one.seq for one in work.claim(db, Stage.EMBED, "anna", limit=9, lease_s=LEASE_S, now=9 * day)] == [1]


def test_retried_work_is_claimed_in_small_batches_and_then_singly(database):
    limit, few = 4 * work.RETRY_BATCH_RATIO, 4
    with database.write() as db:
        work.add(db, range(1, 9), [Stage.EMBED], 0.0)

    def claim_many(owner, now):
        with database.write() as db:
            return work.claim(db, Stage.EMBED, owner, limit=limit, lease_s=LEASE_S, now=now)

    assert len(claim_many("anna", 0.0)) == 8
    assert [len(claim_many("bert", LEASE_S)) for _ in range(3)] == [few, few, 0]
    assert [len(claim_many("carl", 2 * LEASE_S)) for _ in range(3)] == [1, 1, 1]


@pytest.mark.parametrize(
    ("stage", "order"), [(Stage.CAPTURE, [1, 2]), (Stage.EMBED_TURNS, [3, 2]), (Stage.CONCLUDE, [3, 2])]
)
def test_newest_turns_are_claimed_first_where_order_changes_nothing(database, stage, order):
    with database.write() as db:
        work.add(db, [1, 2, 3], [stage], 0.0)
        items = work.claim(db, stage, "anna", limit=2, lease_s=LEASE_S, now=0.0)
    assert [item.seq for item in items] == order


def test_late_completion_after_a_lost_lease_changes_nothing(database):
    with database.write() as db:
        work.add(db, [7], [Stage.EMBED], 0.0)
    [late] = claim(database, "anna", 0.0)
    [taken] = claim(database, "bert", LEASE_S)
    with database.write() as db:
        assert work.complete(db, [late], "anna") == []
        work.fail(db, late, "anna", "too late", backoff_s=1.0, now=LEASE_S)
        work.release(db, [late], "anna")
        assert work.is_held(db, taken, "bert")
        assert not work.is_held(db, late, "anna")
        assert work.complete(db, [taken], "bert") == [WorkItem(7, Stage.EMBED, 2)]


def test_requeued_work_is_not_completed_by_the_previous_claim(database):
    with database.write() as db:
        work.add(db, [7], [Stage.EMBED], 0.0)
    [old] = claim(database, "anna", 0.0)
    with database.write() as db:
        work.add(db, [7], [Stage.EMBED], 1.0)
        assert work.complete(db, [old], "anna") == []
        assert work.count_pending(db)[Stage.EMBED] == 1


def test_oldest_pending_time_is_reported(database):
    with database.write() as db:
        assert work.oldest_pending(db) is None
        work.add(db, [1], [Stage.EMBED], 50.0)
        work.add(db, [2], [Stage.ENTITIES], 40.0)
        assert work.oldest_pending(db) == 40.0


def test_dead_letters_are_paged_by_memory_the_last_written_first(database):
    with database.write() as db:
        work.add(db, range(1, 8), [Stage.EMBED, Stage.ENTITIES], 50.0)
        db.execute("UPDATE work SET dead = 1, error = 'boom', attempts = 5 WHERE memory_seq > 2 AND stage = 'embed'")
        db.execute("UPDATE work SET dead = 1 WHERE memory_seq = 7 AND stage = 'entities'")
    with database.read() as db:
        first = work.list_dead_letters(db, 2)
        assert [(one.memory_seq, one.stage, one.error) for one in first] == [
            (7, Stage.EMBED, "boom"),
            (7, Stage.ENTITIES, ""),
            (6, Stage.EMBED, "boom"),
        ]
        assert {(one.attempts, one.queued_at) for one in work.list_dead_letters(db, 9)} == {(5, 50.0), (0, 50.0)}
        assert [one.memory_seq for one in work.list_dead_letters(db, 9, before=6)] == [5, 4, 3]
        assert work.list_dead_letters(db, 9, before=3) == []


def test_oldest_pending_time_per_stage_ignores_dead_work(database):
    with database.write() as db:
        work.add(db, [1], [Stage.EMBED], 10.0)
        work.add(db, [2], [Stage.EMBED, Stage.DEDUP], 20.0)
        db.execute("UPDATE work SET dead = 1 WHERE memory_seq = 1")
    with database.read() as db:
        assert work.oldest_by_stage(db) == {Stage.EMBED: 20.0, Stage.DEDUP: 20.0}


def test_pending_and_dead_work_does_not_count_as_digested(database):
    for day, text in ((0, "old"), (5, "first"), (6, "second"), (7, "third")):
        write(database, day, text)
    with database.write() as db:
        db.execute("DELETE FROM work WHERE memory_seq = 2")
        db.execute("DELETE FROM work WHERE memory_seq = 3 AND stage <> 'embed'")
        db.execute("UPDATE work SET dead = 1 WHERE memory_seq = 4")
        work.add(db, [2], [Stage.PURGE], 0.0)
    with database.read() as db:
        assert work.count_digested_since(db, text_of(5)) == (3, 1)
        assert work.count_digested_since(db, text_of(6)) == (2, 0)
        assert work.count_digested_since(db, text_of(8)) == (0, 0)
        assert work.count_digested_since(db, text_of(-1)) == (4, 1)
