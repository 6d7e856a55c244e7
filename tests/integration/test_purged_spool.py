"""A purge also removes the text from requests that wait in the spool, or finds it after their delivery."""

import json

import pytest

from config.paths import SPOOL_BEGUN, SPOOL_ENDING, WORKSPACE_HEADER
from pipeline.features.purge.usecases import CLAIMED, scrub_spool
from pipeline.kernel.errors import StoreUnavailable
from tests.fakes.in_process import flush_notes
from tests.integration.test_purged_everywhere import SECRET, list_traces, purge
from web.hooks.spool.delivery import SpoolDelivery
from web.hooks.spool.events import spool_event
from web.hooks.spool.files import SpooledRequest, add_request, hold_request, list_files, read_request
from web.http.app import create_app

pytestmark = pytest.mark.files

OTHER = "Staging listens on port 5433."


@pytest.fixture
def root(home):
    return str(home.paths.root)


@pytest.fixture
def deliver(container):
    delivery = SpoolDelivery(container, create_app(container))

    def run():
        count = delivery.deliver_all()
        flush_notes(container)
        return count

    return run


def wait(root, path="/v1/memories", method="POST", workspace="default", **body):
    return f"{add_request(root, SpooledRequest(method, path, {WORKSPACE_HEADER: workspace}, body))}{SPOOL_ENDING}"


def wait_for_event(root, **fields):
    event = {"session_id": "s1", "cwd": "", **fields}
    assert spool_event(root, "/hooks/claude-code", json.dumps(event).encode(), {})


def contents(client):
    return sorted(memory["content"] for memory in client.get("/v1/memories").get_json()["items"])


def test_waiting_requests_that_quote_it_are_deleted(client, home, root, digested, deliver):
    memory_id = client.write(SECRET)
    digested()
    wait(root, content=f"As was said: {SECRET}")
    wait(root, path="/v1/goals", title="Talk to Xylander before zubrowkating the qwyjibofier_handler at night")
    wait(root, path="/v1/facts/zubrowkating/owner", method="PUT", value="Xylander")
    wait(root, content="A note about it", metadata={"deep": [{"why": SECRET}]})
    wait_for_event(root, hook_event_name="UserPromptSubmit", prompt=f"remember that {SECRET}")
    wait_for_event(
        root, hook_event_name="PostToolUse", tool_name="Edit", tool_input={"file_path": "a.py", "new": SECRET}
    )
    kept = [wait(root, content=OTHER), wait(root, workspace="other", content="Ask before the deployment at night")]
    assert list_traces(home)
    purge(client, memory_id)
    assert list_files(root) == kept
    digested()
    assert list_traces(home) == []
    assert deliver() == 2
    assert contents(client) == [OTHER]


def test_a_held_event_that_quotes_it_is_deleted(client, home, root, digested):
    memory_id = client.write(SECRET)
    digested()
    for said in (SECRET, OTHER):
        event = {"hook_event_name": "Stop", "session_id": "s1", "said": [{"role": "user", "content": said}]}
        hold_request(root, SpooledRequest("POST", "/hooks/claude-code", {}, event))
    purge(client, memory_id)
    digested()
    assert list_traces(home) == []
    assert len(list(home.paths.spool.iterdir())) == 1


def test_the_other_memories_of_a_batch_stay(client, home, root, digested, deliver):
    memory_id = client.write(SECRET)
    digested()
    items = [{"content": OTHER}, {"content": SECRET}, {"content": "Billing listens on port 8123."}]
    file = wait(root, path="/v1/memories/batch", items=items)
    emptied = wait(root, path="/v1/memories/batch", items=[{"content": SECRET}])
    purge(client, memory_id)
    assert emptied not in list_files(root)
    assert read_request(root, file).body == {"items": items[::2]}
    assert (home.paths.spool / file).stat().st_mode & 0o777 == 0o600
    digested()
    assert list_traces(home) == []
    assert deliver() == 1
    assert contents(client) == ["Billing listens on port 8123.", OTHER]


def test_refused_and_damaged_requests_and_drafts_are_searched(client, home, root, digested, deliver):
    memory_id = client.write(SECRET)
    digested()
    wait(root, content=SECRET, kind="rumour")
    assert deliver() == 1
    file = wait(root, content=OTHER)
    damaged = json.dumps({"method": "POST", "body": {"content": SECRET}})[:-1]
    for name in (f"{'9' * 20}-damaged{SPOOL_ENDING}", f".{'8' * 20}-draft{SPOOL_ENDING}"):
        (home.paths.spool / name).write_text(damaged)
    purge(client, memory_id)
    digested()
    assert list_traces(home) == []
    assert list_files(root) == [file]


def test_a_request_that_is_being_delivered_is_found_afterwards(client, home, root, digested, deliver):
    memory_id = client.write(SECRET)
    digested()
    wait_for_event(root, hook_event_name="UserPromptSubmit", prompt=f"Why is this so: {SECRET}")
    [file] = list_files(root)
    begun = f"{file.removesuffix(SPOOL_ENDING)}{SPOOL_BEGUN}"
    (home.paths.spool / file).rename(home.paths.spool / begun)
    purge(client, memory_id)
    assert list_files(root) == [begun]
    assert client.get("/v1/queue").get_json()["pending"]["purge"] == 1
    assert any(begun in error["message"] for error in client.get("/v1/errors").get_json()["items"])
    assert deliver() == 1
    assert list_traces(home)
    digested()
    assert list_traces(home) == []
    assert client.get("/v1/queue").get_json()["pending"]["purge"] == 0


def test_an_interrupted_rewrite_is_finished_by_the_next_turn(tmp_path, monkeypatch):
    wait(str(tmp_path), path="/v1/memories/batch", items=[{"content": OTHER}, {"content": SECRET}])
    folder = tmp_path / "spool"

    def quotes(_workspace, text):
        return SECRET in text

    with monkeypatch.context() as patch:
        patch.setattr("pipeline.kernel.store.atomic_files.publish", fail)
        with pytest.raises(StoreUnavailable, match="no space"):
            scrub_spool(folder, quotes)
    # It is not delivered meanwhile.
    assert list_files(str(tmp_path)) == []
    assert [file.name for file in folder.iterdir() if file.name.endswith(CLAIMED)]
    scrub_spool(folder, quotes)
    [file] = list_files(str(tmp_path))
    assert read_request(str(tmp_path), file).body == {"items": [{"content": OTHER}]}
    assert [entry.name for entry in folder.iterdir()] == [file]


def fail(*_values):
    raise OSError("no space left on device")


def test_without_a_spool_nothing_is_searched(tmp_path):
    scrub_spool(tmp_path / "spool", lambda *_: True)
    assert not (tmp_path / "spool").exists()
