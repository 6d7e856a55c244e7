"""The threads of a worker process, run in this one over a queue in memory."""

import signal
import threading
import time

import pytest
from huey import MemoryHuey
from huey.consumer import WorkerRecycle

from workers import consumer
from workers.consumer import WorkerThreads

DEADLINE_S = 30


@pytest.fixture
def huey():
    return MemoryHuey("consumer", results=False)


@pytest.fixture
def open_threads(huey):
    # Whoever runs the tests in the background may have it ignored.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    opened = []

    def start():
        one = WorkerThreads(
            signal.SIGINT,
            huey=huey,
            stop_flag=threading.Event(),
            default_delay=0.01,
            max_delay=0.02,
            backoff=1.0,
            max_tasks=None,
        )
        opened.append(one)
        one.initialize()
        return one

    yield start
    for one in opened:
        one.stop_flag.set()
        one.shutdown()
    signal.signal(signal.SIGINT, handler)


@pytest.fixture
def started(open_threads):
    return open_threads()


def run_until(threads, condition):
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        threads.loop()


def test_two_tasks_run_at_once(huey, started):
    together = threading.Barrier(2)
    met = []

    @huey.task()
    def meet():
        together.wait(DEADLINE_S)
        met.append(threading.current_thread().name)

    meet()
    meet()
    run_until(started, lambda: len(met) == 2)
    assert sorted(met) == ["MainThread", "thread-2"]


def test_idle_worker_process_is_recycled_to_release_models(huey, started, monkeypatch):
    done = []

    @huey.task()
    def work():
        done.append(1)

    monkeypatch.setattr(consumer, "IDLE_S", 0.0)
    # Who did nothing has nothing to let go.
    for _ in range(5):
        started.loop()
    work()
    with pytest.raises(WorkerRecycle):
        run_until(started, lambda: False)
    assert done == [1]


def test_the_process_ends_only_after_the_tasks_of_its_threads(huey, started):
    began, may_end, ended = threading.Event(), threading.Event(), []

    @huey.task()
    def work():
        began.set()
        may_end.wait(DEADLINE_S)
        ended.append(1)

    work()
    # The main thread takes none.
    assert began.wait(DEADLINE_S)
    started.stop_flag.set()
    threading.Timer(0.2, may_end.set).start()
    started.shutdown()
    assert ended == [1]


def test_an_interrupt_reaches_every_thread(huey, started):
    began, released = threading.Event(), []

    @huey.task()
    def work():
        try:
            began.set()
            while True:
                threading.Event().wait(0.01)
        except KeyboardInterrupt:
            released.append(threading.current_thread().name)
            raise

    work()
    assert began.wait(DEADLINE_S)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    started.shutdown()
    assert released == ["thread-2"]
    with pytest.raises(WorkerRecycle):
        started.loop()


def test_a_purge_runs_while_every_other_thread_waits(huey, open_threads):
    """As when each needs an encoder that is compiled for minutes."""
    released, done = threading.Event(), []
    huey.purges = MemoryHuey("purges", results=False)

    @huey.task()
    def embed():
        released.wait(DEADLINE_S)

    @huey.purges.task()
    def purge():
        done.append(threading.current_thread().name)
        released.set()

    one = open_threads()
    for _ in range(consumer.THREADS + 1):
        embed()
    purge()
    run_until(one, lambda: done)
    assert done == [f"thread-{consumer.THREADS + 1}"]
