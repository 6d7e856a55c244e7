import threading

import pytest

from pipeline.kernel.store import changes
from pipeline.recall.feedback import NotedUsage, UsageBuffer
from tests.fakes.in_process import scratch_database
from tests.fakes.job_runs import count_accesses, read, text_of, write
from tests.fakes.recall_workspace import open_recall_workspace


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


def recalls(database, seq):
    with database.read() as db:
        return db.execute("SELECT recall_count, recalled_at FROM memory WHERE seq = ?", (seq,)).fetchone()


def test_counts_add_up_until_they_are_taken():
    buffer = UsageBuffer()
    buffer.add_accesses([3, 5])
    buffer.add_accesses([5, 5])
    assert buffer.take().accesses == {3: 1, 5: 3}
    assert buffer.take().accesses == {}


def test_no_count_is_lost_between_threads():
    buffer, taken = UsageBuffer(), []
    done = threading.Event()

    def note():
        for _ in range(500):
            buffer.add_accesses([1, 2])

    def take():
        while not done.is_set():
            taken.append(buffer.take().accesses)

    taker = threading.Thread(target=take)
    noters = [threading.Thread(target=note) for _ in range(4)]
    for thread in (taker, *noters):
        thread.start()
    for thread in noters:
        thread.join()
    done.set()
    taker.join()
    taken.append(buffer.take().accesses)
    assert [sum(counts.get(seq, 0) for counts in taken) for seq in (1, 2)] == [2000, 2000]


def test_full_usage_buffer_counts_only_known_memories():
    buffer = UsageBuffer(max_memories=2)
    buffer.add_accesses([1, 2, 3, 1])
    assert buffer.take().accesses == {1: 2, 2: 1}
    buffer.add_accesses([3])
    assert buffer.take().accesses == {3: 1}


def test_unwritten_usage_is_counted_again():
    buffer = UsageBuffer()
    buffer.add_accesses([1, 2])
    buffer.add_question("Who is on call?")
    noted = buffer.take()
    assert noted == NotedUsage({1: 1, 2: 1}, 1, {"Who is on call?": 1})
    buffer.add_accesses([2])
    buffer.add_question("Who is on call?")
    buffer.put_back(noted)
    assert buffer.take() == NotedUsage({1: 1, 2: 2}, 2, {"Who is on call?": 2})


def test_counts_are_added_and_the_last_recall_is_known(database):
    write(database, 0, "The port of staging is 5433")
    assert count_accesses(database, {1: 2}, text_of(1)) == 1
    assert count_accesses(database, {1: 1}, text_of(3)) == 1
    assert recalls(database, 1) == (3, text_of(3))


def test_a_count_that_comes_late_does_not_turn_the_clock_back(database):
    write(database, 0, "The port of staging is 5433")
    count_accesses(database, {1: 1}, text_of(3))
    count_accesses(database, {1: 1}, text_of(1))
    assert recalls(database, 1) == (2, text_of(3))


def test_usage_of_a_purged_memory_is_ignored(database):
    write(database, 0, "The port of staging is 5433")
    assert count_accesses(database, {1: 1, 99: 4}, text_of(1)) == 1


def test_a_touch_is_neither_a_change_nor_an_edit(database):
    memory_id = write(database, 0, "The port of staging is 5433")
    with database.read() as db:
        before = changes.generation(db)
    count_accesses(database, {1: 1}, text_of(1))
    with database.read() as db:
        assert changes.generation(db) == before
    assert read(database, memory_id).updated_at == text_of(0)


def test_a_touch_changes_no_ranking():
    with open_recall_workspace() as workspace:
        for number in range(5):
            workspace.write(f"The port of host {number} is {5000 + number}")
        order = workspace.find_ids("port of the host")
        count_accesses(workspace.database, {5: 50, 3: 9}, text_of(1))
        workspace.write("Nothing about this")
        assert [found for found in workspace.find_ids("port of the host") if found in order] == order
