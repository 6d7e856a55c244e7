"""Requests spooled while the server was down arrive once, however often it is killed while it delivers them."""

import contextlib
import json
import random
import sqlite3

import pytest

from config.settings import Settings
from tests.support.stack import HOST, wait_until
from web.hooks.spool.events import spool_event
from web.hooks.spool.files import describe_spool
from web.hooks.spool.writes import add_client_ids, spool_write

pytestmark = pytest.mark.timeout(300)

SEED = 67
MEMORIES, EVENTS, KILLS = 60, 60, 3
# Deliveries before a kill; the server delivers a few more until it ends.
MOST_DELIVERED = 20


def fill_spool(settings, home):
    """Spool memories and hook events in turn; return the ids of the memories and the files of the events."""
    ids, files = [], []
    for number in range(max(MEMORIES, EVENTS)):
        body = add_client_ids(
            "POST", "/v1/memories", {"content": f"Service n{number}q listens on port {number + 4000}"}
        )
        assert spool_write(settings, "POST", "/v1/memories", body, "default")
        ids.append(body["id"])
        event = {
            "hook_event_name": "PostToolUse",
            "session_id": "s1",
            "tool_name": "Edit",
            "tool_input": {"file_path": f"module_{number}.py"},
            "tool_use_id": f"t{number}",
        }
        assert spool_event(str(home), "/hooks/claude-code", json.dumps(event).encode(), {})
        files.append(f"module_{number}.py")
    return ids, files


def test_spooled_writes_arrive_exactly_once_despite_crashes(make_stack):
    stack = make_stack()
    settings = Settings(home=stack.home, host=HOST, port=stack.port)
    ids, files = fill_spool(settings, stack.home)
    rng = random.Random(SEED)
    interrupted = 0
    for _ in range(KILLS):
        # Kill it after a random number of deliveries. A fast machine may have nothing left at the last kill.
        left = max(describe_spool(str(stack.home)).files - rng.randint(1, MOST_DELIVERED), 0)
        stack.launch("web")
        wait_until("some deliveries", lambda limit=left: describe_spool(str(stack.home)).files <= limit)
        stack.kill("web")
        interrupted += describe_spool(str(stack.home)).files > 0
    stack.start("web")
    wait_until("the spool is empty", lambda: describe_spool(str(stack.home)).files == 0)
    assert interrupted >= 1
    assert describe_spool(str(stack.home)).refused == 0
    with contextlib.closing(stack.client()) as client:
        assert client.errors() == []
    stack.kill("web")
    with contextlib.closing(sqlite3.connect(stack.workspace / "events.sqlite")) as database:
        stored = database.execute("SELECT id, merge_count FROM memory WHERE kind = 'fact' ORDER BY id").fetchall()
        actions = database.execute("SELECT target FROM action ORDER BY seq").fetchall()
    assert stored == [(memory_id, 0) for memory_id in sorted(ids)]
    assert [target for (target,) in actions] == files
