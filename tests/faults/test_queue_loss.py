"""The queue's file holds only messages: delete it at any time, and what was written is digested all the same."""

import contextlib
import os

import pytest

from tests.support.stack import Stack, wait_until


@pytest.fixture(scope="module")
def module_stack(tmp_path_factory, models):
    with Stack(tmp_path_factory.mktemp("queue") / "home", models) as stack:
        stack.start("web")
        yield stack


@pytest.fixture
def client(module_stack):
    with contextlib.closing(module_stack.client()) as client:
        yield client


@pytest.fixture
def stack(module_stack, client):
    """A home where everything runs and everything written is digested."""
    module_stack.launch(*({"web", "worker", "scheduler"} - set(module_stack.running)))
    client.remember("Something to begin with.")
    module_stack.wait_until_digested(client)
    return module_stack


def delete_queue(stack):
    """Delete the queue's files as a person would: the file first, then what lies beside it."""
    for suffix in ("", "-shm", "-wal"):
        (stack.home / f"queue.sqlite{suffix}").unlink(missing_ok=True)


def wait_until_found(client, memory_id, words):
    # Vectors are taken in beside the traffic: a busy server answers without the newest for a moment.
    wait_until("it is found first", lambda: client.recall(words, k=1)["results"][0]["id"] == memory_id)


def test_a_queue_deleted_while_everything_runs_loses_no_write(stack, client):
    # More than once: after a loss the next one must be survived too.
    for turn in range(2):
        delete_queue(stack)
        wanted = client.remember(f"Written in turn {turn}, after the queue was lost.")
        stack.wait_until_digested(client)
        wait_until_found(client, wanted, f"Written in turn {turn}")
    assert (stack.home / "queue.sqlite").exists()
    assert [stack.running[name].poll() for name in ("web", "worker", "scheduler")] == [None] * 3


def test_a_lost_write_ahead_log_is_survived(stack, client):
    for turn in range(2):
        for suffix in ("-wal", "-shm"):
            (stack.home / f"queue.sqlite{suffix}").unlink(missing_ok=True)
        client.remember(f"Written in turn {turn}, after the log was lost.")
        stack.wait_until_digested(client)
    assert [stack.running[name].poll() for name in ("web", "worker", "scheduler")] == [None] * 3


def test_a_queue_overwritten_with_nonsense_is_replaced(stack, client):
    draft = stack.home / "nonsense"
    draft.write_bytes(os.urandom(20_000))
    draft.replace(stack.home / "queue.sqlite")
    client.remember("Written after the queue was spoiled.")
    stack.wait_until_digested(client)
    for name in ("web", "worker", "scheduler"):
        stack.kill(name, with_children=True)
    client.close()
    (stack.home / "queue.sqlite").write_bytes(os.urandom(20_000))
    stack.start("web", "worker", "scheduler")
    client.remember("Written after the queue was spoiled once more.")
    stack.wait_until_digested(client)


def test_a_queue_deleted_while_the_worker_was_down_loses_no_write(stack, client):
    stack.kill("worker", with_children=True)
    client.remember("Written while no worker ran.")
    delete_queue(stack)
    client.remember("Written to the queue that followed.")
    delete_queue(stack)
    assert stack.pending(client)
    stack.start("worker")
    stack.wait_until_digested(client)


def test_writes_with_a_lost_wake_up_are_digested_later(stack, client):
    stack.kill("scheduler")
    stack.kill("worker", with_children=True)
    delete_queue(stack)
    client.remember("Written when only the web server ran.")
    wait_until("the web server has sent a message", (stack.home / "queue.sqlite").exists)
    # Nothing of what the web server sent reaches the worker that comes later.
    delete_queue(stack)
    assert stack.pending(client) == {"embed": 1, "entities": 1}
    stack.start("worker", "scheduler")
    stack.wait_until_digested(client)


def test_a_worker_alone_hears_the_wake_up(stack, client):
    stack.kill("scheduler")
    client.remember("Written with no scheduler at all.")
    stack.wait_until_digested(client)
