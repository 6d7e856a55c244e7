"""Merging: whatever arrives in whatever order, the machines come to say the same, and nothing is lost."""

import random
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pipeline.features.sync.merge import CONFLICT, list_overruled, merge, repair
from pipeline.kernel.records import Draft, Filter, Kind, Outcome, Revision, Sensitivity, Source
from pipeline.kernel.records.access import WritePolicy
from pipeline.kernel.store import clock, duplicates, history, index_state, memories, meta, oplog
from pipeline.kernel.store.log_start import start_log
from pipeline.kernel.store.replicated_records import MEMORY, Key
from pipeline.kernel.times import utc_now
from pipeline.write import revise
from pipeline.write.accept import accept
from tests.fakes.machines import DAY_MS, Machine, act, close_all, exchange_all, list_lost
from tests.fakes.properties import examples

SEEDS = st.integers(0, 2**32)
# Admission leaves it to a person, if it is not written deliberately.
DOUBTFUL = "Deploys of the shop wait for the tests"


@pytest.fixture
def machines(tmp_path):
    made = [Machine(number, tmp_path / str(number) / "events.sqlite") for number in range(3)]
    yield made
    close_all(made)


def check(machines):
    exchange_all(machines)
    assert len({machine.dump() for machine in machines}) == 1
    assert not list_lost(machines)


class Peers(RuleBasedStateMachine):
    """Two to five machines whose clocks differ by up to a day either way, and what travels between them."""

    @initialize(count=st.integers(2, 5), skews=st.lists(st.integers(-DAY_MS, DAY_MS), min_size=5, max_size=5))
    def begin(self, count, skews):
        self.folder = Path(tempfile.mkdtemp())
        self.machines = [
            Machine(number, self.folder / str(number) / "events.sqlite", skews[number]) for number in range(count)
        ]
        for machine in self.machines:
            with machine.database.write() as db:
                meta.put(db, meta.CLOCK, f"{machine.wall_ms():014d}-000000")

    @rule(who=SEEDS, seed=SEEDS)
    def write(self, who, seed):
        act(self.machines[who % len(self.machines)], random.Random(seed))

    @rule(sender=SEEDS, receiver=SEEDS, seed=SEEDS, kept=st.floats(0, 1), twice=st.booleans())
    def deliver(self, sender, receiver, seed, kept, twice):
        """Let some of what a machine says arrive, in any order, perhaps twice; the rest is lost for now."""
        choice = random.Random(seed)
        told = self.machines[sender % len(self.machines)].send()
        choice.shuffle(told)
        arrived = told[: int(kept * len(told)) + 1]
        self.machines[receiver % len(self.machines)].receive(arrived * (1 + twice))

    @rule(who=SEEDS)
    def crash(self, who):
        machine = self.machines[who % len(self.machines)]
        machine.database.close()
        machine.open()

    @precondition(lambda self: hasattr(self, "machines"))
    @invariant()
    def rows_equal_the_log(self):
        for machine in self.machines:
            machine.dump()

    def teardown(self):
        if hasattr(self, "machines"):
            try:
                check(self.machines)
            finally:
                close_all(self.machines)
                shutil.rmtree(self.folder)


TestPeers = Peers.TestCase
TestPeers.settings = examples(15, stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def test_later_edit_wins_and_the_overruled_value_can_be_restored(machines):
    one, other, third = machines
    memory = accept(one.database, Draft("port 1"))
    exchange_all(machines)
    revise.edit(one.database, memory.id, Revision(content="port 2"))
    revise.edit(other.database, memory.id, Revision(content="port 3"))
    exchange_all(machines)
    for machine in machines:
        with machine.database.read() as db:
            assert [row.content for row in history.of(db, 1) if row.event == CONFLICT] == ["port 2"]
            fold = oplog.fold(db, [Key(MEMORY, memory.id)])[Key(MEMORY, memory.id)]
            assert [(name, value) for name, _, _, value in list_overruled(fold)] == [("content", "port 2")]
    revise.edit(third.database, memory.id, Revision(content="port 2"))
    exchange_all(machines)
    with one.database.read() as db:
        fold = oplog.fold(db, [Key(MEMORY, memory.id)])[Key(MEMORY, memory.id)]
        assert (fold.fields["content"], list_overruled(fold)) == ("port 2", [])


def test_different_fields_do_not_get_in_each_others_way_and_tags_are_sets(machines):
    one, other, _ = machines
    memory = accept(one.database, Draft("port 1", tags=("a", "b")))
    exchange_all(machines)
    revise.edit(one.database, memory.id, Revision(pinned=True, tags=("b", "c")))
    revise.edit(other.database, memory.id, Revision(content="port 2", tags=("a", "b", "d")))
    exchange_all(machines)
    merged = revise.edit(machines[2].database, memory.id, Revision())
    assert (merged.content, merged.pinned, set(merged.tags)) == ("port 2", True, {"b", "c", "d"})


def test_one_text_on_two_machines_becomes_one_memory_with_both_provenances(machines):
    one, other, _ = machines
    first = accept(one.database, Draft("the same", tags=("here",), session_id="s1"))
    second = accept(other.database, Draft("the same", tags=("there",), session_id="s2"))
    exchange_all(machines)
    for machine in machines:
        with machine.database.read() as db:
            rows = db.execute("SELECT id, tags FROM memory WHERE archived_at IS NULL").fetchall()
            told = db.execute("SELECT session_id FROM memory ORDER BY id").fetchall()
        [(survivor, tags)] = rows
        assert survivor == min(first.id, second.id)
        assert {"here", "there"} <= set(tags.strip("[]").replace('"', "").split(", "))
        assert sorted(told) == [("s1",), ("s2",)]


@pytest.mark.parametrize("is_accepted_first", [False, True])
def test_candidate_that_another_machine_accepted_is_found_everywhere(machines, is_accepted_first):
    one, other, _ = machines
    writes = [
        lambda: accept(one.database, Draft(DOUBTFUL, source=Source.AMBIENT), WritePolicy(review=True)),
        lambda: accept(other.database, Draft(DOUBTFUL)),
    ]
    receipts = [write() for write in (reversed(writes) if is_accepted_first else writes)]
    assert {receipt.outcome for receipt in receipts} == {Outcome.CANDIDATE, Outcome.CREATED}
    check(machines)
    for machine in machines:
        with machine.database.read() as db:
            [memory] = memories.page(db, Filter(), 10, None)
            assert (memory.id, memory.candidate) == (min(receipt.id for receipt in receipts), False)
            assert memory.seq in index_state.list_tail_seqs(db)


def test_memories_with_one_text_are_united_at_the_later_creation(machines):
    one, other, _ = machines
    receipts = [accept(machine.database, Draft("the same")) for machine in (one, other)]
    check(machines)
    with one.database.read() as db:
        rows = memories.by_ids(db, [receipt.id for receipt in receipts])
    created = [rows[receipt.id].created_at for receipt in receipts]
    assert [rows[receipt.id].archived_at for receipt in receipts] == [None, max(created)]


@pytest.mark.parametrize("comes_first", ["survivor", "absorbed"])
def test_merge_is_complete_when_its_second_memory_arrives(machines, comes_first):
    one, other, _ = machines
    survivor, absorbed = (accept(one.database, Draft(f"port {number}")) for number in (1, 2))
    with one.database.write() as db:
        rows = memories.by_ids(db, [survivor.id, absorbed.id])
        duplicates.merge(db, rows[survivor.id], rows[absorbed.id], duplicates.DEDUP, utc_now(), {})
    sent = one.send()
    late = absorbed if comes_first == "survivor" else survivor
    other.receive([operation for operation in sent if late.id not in (operation.key.memory_id, operation.key.other_id)])
    assert [late.id in other.ids(), len(other.ids())] == [False, 1]
    other.receive(sent)
    with other.database.read() as db:
        rows = memories.by_ids(db, [survivor.id, absorbed.id])
        merged = memories.list_merged_into(db, rows[survivor.id].seq)
    assert [memory.id for memory in merged] == [absorbed.id]
    assert rows[absorbed.id].archived_at
    check(machines)


def test_overruled_text_is_kept_as_text_and_other_values_as_details(machines):
    one, other, _ = machines
    memory = accept(one.database, Draft("port 1"))
    exchange_all(machines)
    revise.edit(one.database, memory.id, Revision(content="port 2", importance=0.2))
    revise.edit(other.database, memory.id, Revision(content="port 3", importance=0.9))
    exchange_all(machines)
    for machine in machines:
        with machine.database.read() as db:
            conflicts = {entry.detail["field"]: entry for entry in history.of(db, 1) if entry.event == CONFLICT}
        assert set(conflicts) == {"content", "importance"}
        assert conflicts["content"].content == "port 2"
        assert "value" not in conflicts["content"].detail
        assert (conflicts["importance"].content, conflicts["importance"].detail["value"]) == (None, 0.2)
        assert {entry.detail["by"] for entry in conflicts.values()} == {f"{one.number:08x}"}


def test_fact_values_of_several_machines_do_not_overlap(machines):
    one, other, _ = machines

    def set_port(machine, value, day):
        details = {"subject": "shop", "attribute": "port", "value": value}
        at = f"2026-01-0{day}T00:00:00.000Z"
        accept(machine.database, Draft("told", kind=Kind.KEYED_FACT, details=details, occurred_at=at))

    set_port(one, 1, 1)
    exchange_all(machines)
    set_port(one, 2, 5)
    set_port(other, 3, 3)
    exchange_all(machines)
    for machine in machines:
        with machine.database.read() as db:
            rows = db.execute("SELECT details, valid_from, valid_to FROM memory ORDER BY valid_from").fetchall()
        assert [row[1][8:10] for row in rows] == ["01", "03", "05"]
        assert [row[2] and row[2][8:10] for row in rows] == ["03", "05", None]


def test_a_purge_beats_every_edit_and_nothing_brings_it_back(machines):
    one, other, third = machines
    memory = accept(one.database, Draft("the flumadiddle"))
    late = one.send()
    exchange_all(machines)
    revise.purge(one.database, memory.id)
    revise.edit(other.database, memory.id, Revision(content="the flumadiddle again"))
    third.receive(one.send())
    third.receive(late)
    third.receive(other.send())
    exchange_all(machines)
    for machine in machines:
        assert machine.ids() == []
        with machine.database.read() as db:
            assert "flumadiddle" not in "\n".join(db.iterdump())


def test_operation_from_the_future_is_quarantined_and_others_apply(machines):
    one, other, _ = machines
    start_log(one.database)
    accept(one.database, Draft("sound"))
    with one.database.write() as db:
        meta.put(db, meta.CLOCK, f"{clock.wall_ms() + 10 * DAY_MS:014d}-000000")
    accept(one.database, Draft("from the future"))
    merged = merge(other.database, one.send())
    assert merged.applied == 1
    [(place, reason)] = merged.put_aside
    assert place == 1
    assert "240 hours ahead" in reason


def test_repair_restores_rows_from_the_log(machines):
    one = machines[0]
    start_log(one.database)
    memory = accept(one.database, Draft("true"))
    with one.database.write() as db:
        db.execute("UPDATE memory SET content = 'false'")
        db.execute("DELETE FROM touched")
    assert repair(one.database) == 1
    assert revise.edit(one.database, memory.id, Revision()).content == "true"
    assert repair(one.database) == 0


def test_two_machines_that_stored_one_rule_keep_the_stronger_fields(machines):
    one, two, _ = machines
    stored = accept(one.database, Draft("Never push to main.", Kind.LESSON, details={"severity": "critical"}))
    revise.edit(one.database, stored.id, Revision(pinned=True))
    accept(two.database, Draft("Never push to main.", Kind.LESSON, sensitivity=Sensitivity.PRIVATE))
    check(machines)
    for machine in machines:
        with machine.database.read() as db:
            [memory] = memories.page(db, Filter(kinds=(Kind.LESSON,)), 10, None)
        assert (memory.details["severity"], memory.pinned, memory.sensitivity) == ("critical", True, "private")
