"""A purge whose later steps fail or never happen: the first commit makes it durable, and the worker finishes it."""

import sqlite3
from contextlib import closing, contextmanager

import pytest

from pipeline.features.memories import usecases as memories
from pipeline.features.purge import usecases as purges
from pipeline.kernel.errors import StoreFull
from pipeline.kernel.store import work
from pipeline.kernel.store.home_file import HomeFile
from pipeline.kernel.store.sqlite import SqliteDatabase
from tests.fakes.in_process import flush_notes
from tests.integration.test_purged_copies import is_known, move
from tests.integration.test_purged_everywhere import SECRET, list_traces, purge, show_everywhere

pytestmark = pytest.mark.files
STEPS = [
    (purges, "_follow_copies"),
    (purges, "_refuse_return"),
    (purges, "_erase_outside"),
    (purges.snapshot, "delete_matching_texts_of_store"),
    (purges.tables, "erase_quotations"),
    (HomeFile, "erase_deleted_data"),
    (SqliteDatabase, "erase_deleted_data"),
    (work, "complete"),
]


@contextmanager
def locked(file):
    """Keep everybody else from writing to a file."""
    with closing(sqlite3.connect(file, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        yield
        holder.execute("ROLLBACK")


@pytest.fixture
def shown(client, container, digested):
    """A memory that was moved and shown."""
    memory_id = client.write(SECRET, workspace="alpha")
    move(client, memory_id, "alpha", "default")
    digested()
    show_everywhere(client, memory_id)
    flush_notes(container)
    return memory_id


def digest_everywhere(digested):
    for workspace in ("default", "alpha", "me"):
        digested(workspace)


def test_a_locked_journal_only_delays_the_rest(client, container, home, shown, digested):
    with locked(home.paths.home):
        purge(client, shown)
        # Again, as who got no answer does.
        purge(client, shown)
        assert not is_known(client, shown, "default")
    # The server's own attempt ends first: of two processes that rewrite one file, one is put off.
    flush_notes(container)
    digest_everywhere(digested)
    assert list_traces(home) == []


def test_a_locked_workspace_only_delays_the_copies(client, container, home, shown, digested):
    with locked(home.paths.workspace("alpha").events):
        purge(client, shown)
        assert client.get("/v1/queue").get_json()["pending"]["purge"] == 1
    flush_notes(container)
    digest_everywhere(digested)
    assert list_traces(home) == []
    assert not is_known(client, shown, "alpha")


def test_a_locked_store_purges_nothing(client, home, shown):
    with locked(home.paths.workspace("default").events):
        assert client.delete(f"/v1/memories/{shown}?hard=true").status_code == 503
    assert is_known(client, shown, "default")


@pytest.mark.parametrize(("owner", "step"), STEPS, ids=[name for _, name in STEPS])
def test_a_step_that_fails_is_done_later(client, home, shown, digested, monkeypatch, owner, step):
    # The server ends right behind the first commit.
    monkeypatch.setattr(memories, "finish_purges", lambda _workspace: None)
    purge(client, shown)
    real, left = getattr(owner, step), [1]

    def fail_once(*given, **named):
        if left:
            left.clear()
            raise StoreFull("no room")
        return real(*given, **named)

    monkeypatch.setattr(owner, step, fail_once)
    with pytest.raises(StoreFull):
        digest_everywhere(digested)
    assert client.get("/v1/queue").get_json()["pending"]["purge"] == 1
    digest_everywhere(digested)
    assert list_traces(home) == []
    assert not is_known(client, shown, "alpha")
