"""What was purged in any way of the day does not come back in any other way of the day."""

import json

import pytest

from tests.fakes.dashboard import sign_in
from tests.fakes.homes import Home, pair
from tests.fakes.in_process import digest_all, flush_notes, open_worker
from tests.fakes.statements import MarkedStatements
from tests.integration.test_purged_everywhere import list_traces

RULE = "rule: always ask Xylander before zubrowkating the qwyjibofier"
ASKED = "whom to ask before zubrowkating the qwyjibofier?"
SESSION = "11111111-aaaa-4aaa-8aaa-000000000001"


@pytest.fixture
def worker(worker):
    worker._statements = MarkedStatements()
    worker._classifier = lambda *_given: worker._statements
    return worker


@pytest.fixture
def digest(container, worker):
    def run():
        flush_notes(container)
        # What is captured is digested like any other memory.
        for workspace in 2 * container.settings.paths.workspace_ids():
            digest_all(worker, workspace)

    return run


def say(client, text, session=SESSION, workspace="default"):
    messages = [{"role": "user", "content": text}]
    return client.post("/v1/turns", {"session_id": session, "messages": messages}, workspace=workspace).get_json()


def find(client, workspace="default"):
    answer = client.get("/v1/memories", workspace=workspace)
    items = [] if answer.status_code == 404 else answer.get_json()["items"]
    return [memory["id"] for memory in items if "zubrowkating" in memory["content"]]


def purge_by_api(client, memory_id, _app):
    # `reverie purge` and the MCP tool `forget` with `hard` send this request.
    assert client.delete(f"/v1/memories/{memory_id}?hard=true").status_code == 200


def purge_in_dashboard(client, memory_id, _app):
    sign_in(client).submit(f"/w/default/memories/{memory_id}/purge", "Purge permanently")


def forget_last_message(client, _memory_id, _app):
    assert "deleted" in say(client, "forget what I just said")["done"][0]


def forget_that(client, _memory_id, _app):
    assert "archived" in say(client, "forget that")["done"][0]


WAYS = [purge_by_api, purge_in_dashboard, forget_last_message, forget_that]


def offer_everywhere(client, digest, exported):
    """Offer the memory in every way that a day has, except by the person's own command."""
    fields = {"content": RULE, "kind": "lesson"}
    for source in ("agent", "ambient", "import"):
        client.post("/v1/memories", fields | {"source": source})
        client.post("/v1/memories/batch", {"items": [fields | {"source": source}]})
    item = {"key": "notes.md", "digest": "1", "memories": [fields]}
    client.put("/v1/sources/notes/items", {"items": [item]})
    for memory in exported:
        client.post("/v1/memories", {"content": memory["content"], "kind": memory["kind"], "source": "import"})
    say(client, RULE, session="another")
    client.post("/v1/memories", fields | {"source": "agent"}, workspace="beta")
    digest()


@pytest.mark.files
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_purged_captured_memory_does_not_return(app, client, digest, way):
    client.write("The billing service listens on port 8123.")
    client.write("The billing service listens on port 8123.", workspace="beta")
    say(client, RULE)
    digest()
    (memory_id,) = find(client)
    prompt = {"hook_event_name": "UserPromptSubmit", "session_id": "s9", "cwd": "", "prompt": ASKED}
    client.post("/hooks/claude-code", prompt)
    exported = [json.loads(line) for line in client.get("/v1/export").get_data(as_text=True).splitlines() if line]
    exported = [record for record in exported if "zubrowkating" in str(record.get("content", ""))]
    way(client, memory_id, app)
    digest()
    assert find(client) == []
    offer_everywhere(client, digest, exported)
    assert find(client) == []
    if way is not forget_that:
        assert find(client, "beta") == []
    shown = client.post("/hooks/claude-code", prompt | {"session_id": "s10"}).get_data(as_text=True)
    assert "Xylander" not in shown


@pytest.mark.files
@pytest.mark.parametrize("way", [purge_by_api, purge_in_dashboard, forget_last_message], ids=lambda way: way.__name__)
def test_purge_erases_captured_text_from_every_file(app, client, home, digest, way):
    client.write("The billing service listens on port 8123.")
    say(client, RULE)
    digest()
    (memory_id,) = find(client)
    way(client, memory_id, app)
    digest()
    assert list_traces(home, ("zubrowkating", "qwyjibofier")) == []


@pytest.fixture
def laptop(tmp_path, container):
    """Another machine of the user, and how both exchange over a folder: it digests what it receives."""
    laptop = Home(tmp_path / "laptop")
    pair(container, laptop, url=f"dir:{tmp_path / 'remote'}")
    worker = open_worker(laptop.settings)

    def exchange():
        for _ in range(3):
            container.sync.now()
            laptop.sync.now()
        for workspace in laptop.settings.paths.workspace_ids():
            digest_all(worker, workspace)

    yield laptop, exchange
    worker.close()
    laptop.close()


@pytest.mark.files
@pytest.mark.parametrize("way", [purge_by_api, purge_in_dashboard, forget_last_message], ids=lambda way: way.__name__)
def test_after_the_next_sync_no_file_of_either_machine_contains_it(app, client, home, digest, laptop, tmp_path, way):
    words = ("zubrowkating", "qwyjibofier")
    laptop, exchange = laptop
    client.write("The billing service listens on port 8123.")
    say(client, RULE)
    digest()
    exchange()
    (memory_id,) = find(client)
    assert laptop.get(memory_id) is not None
    assert list_traces(laptop.settings, words) != []
    way(client, memory_id, app)
    digest()
    exchange()
    assert laptop.get(memory_id) is None
    for settings in (home, laptop.settings):
        assert list_traces(settings, words) == []
    remote = b"".join(file.read_bytes() for file in (tmp_path / "remote").rglob("*") if file.is_file())
    assert all(word.encode() not in remote for word in words)
    # It is offered again, and a sync brings nothing back.
    offer_everywhere(client, digest, [{"content": RULE, "kind": "lesson"}])
    exchange()
    digest()
    assert find(client) == []
    assert laptop.texts() == ["The billing service listens on port 8123."]
