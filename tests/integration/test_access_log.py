"""Who read and wrote what: noted of every person, of nobody else, and without a word of it."""

import pytest

from config.paths import HomePaths
from pipeline.features.people.access_log import OWNER, AccessLog
from pipeline.kernel.errors import StoreUnavailable
from pipeline.kernel.store.home_file import HomeFile
from pipeline.kernel.store.operations import Operations
from pipeline.kernel.store.people import MAX_IDS_PER_ENTRY, AccessEntry, AccessQuery, People
from pipeline.kernel.times import utc_now
from tests.fakes.client import CheckedClient
from tests.fakes.command_line import run
from tests.fakes.in_process import fast_settings, open_web
from tests.fakes.people import PersonClient, add_person
from web.http.app import APIS

TEAM = "team"


@pytest.fixture
def container(tmp_path):
    container = open_web(fast_settings(tmp_path / "home"))
    yield container
    container.close()


@pytest.fixture
def owner(app, container):
    return CheckedClient(app, container.token)


@pytest.fixture
def ada(app, container, owner):
    owner.write("The team meets at noon", workspace=TEAM)
    return PersonClient(app, container, add_person(container, "Ada", **{TEAM: "writer"}), TEAM)


def entries(client, query=""):
    return client.get(f"/v1/access-log{query}").get_json()["items"]


def test_access_log_records_writes_and_reads_with_memory_ids(ada, owner, container):
    written = ada.post("/v1/memories", {"content": "The port is 8123"})
    read = ada.post("/v1/recall", {"query": "port"})
    record = ada.get(f"/v1/memories/{written.json['id']}")
    told = {hit["id"] for hit in read.json["results"]}
    assert written.json["id"] in told
    [third, second, first] = entries(owner)
    assert first == {
        "at": first["at"],
        "request_id": written.headers["X-Request-Id"],
        "person": "ada",
        "token_id": container.people.list_tokens()[0].id,
        "workspace": TEAM,
        "action": "POST /v1/memories",
        "status": 201,
        "memory_ids": [written.json["id"]],
        "memories": 1,
    }
    assert (second["action"], second["request_id"]) == ("POST /v1/recall", read.headers["X-Request-Id"])
    assert set(second["memory_ids"]) == told
    assert third["action"] == "GET /v1/memories/<memory_id>"
    assert third["request_id"] == record.headers["X-Request-Id"]
    assert written.json["id"] in third["memory_ids"]


def test_no_word_of_a_memory_is_in_it(ada, container):
    ada.write("zanzibar is a word like no other")
    ada.recall("zanzibar")
    ada.get("/v1/memories?session_id=zanzibar")
    container.access_log.flush()
    home = container.settings.paths
    for file in home.root.glob("home.sqlite*"):
        assert b"zanzibar" not in file.read_bytes()


def test_access_log_records_rejected_requests_with_their_status(ada, owner):
    assert ada.get("/v1/stats", workspace="elsewhere").status_code == 404
    assert ada.post("/v1/queue/retry", {}).status_code == 403
    assert ada.post("/v1/memories", {"content": ""}).status_code == 422
    found = [(one["workspace"], one["action"], one["status"], one["memories"]) for one in entries(owner)]
    assert found == [
        (TEAM, "POST /v1/memories", 422, 0),
        (TEAM, "POST /v1/queue/retry", 403, 0),
        ("elsewhere", "GET /v1/stats", 404, 0),
    ]


def test_a_name_that_is_no_workspaces_is_not_kept(ada, owner):
    assert ada.get("/v1/stats", workspace="my password is x").status_code == 400
    assert [one["workspace"] for one in entries(owner)] == [None]


def test_access_log_omits_requests_of_the_owner(owner, container):
    owner.write("The port is 8123")
    owner.recall("port")
    assert entries(owner) == []
    assert not container.settings.paths.home.exists()


def test_access_log_is_readable_only_by_administrators(ada, app, container, owner):
    assert ada.get("/v1/access-log").status_code == 403
    admin = PersonClient(app, container, add_person(container, "Bo", admin=True), TEAM)
    assert [one["action"] for one in entries(admin)] == ["GET /v1/access-log"]
    # That somebody read the log is in the log.
    assert [one["person"] for one in entries(owner)] == ["bo", "ada"]


def test_it_is_read_by_person_workspace_and_time_a_page_at_a_time(ada, app, container, owner):
    bob = PersonClient(app, container, add_person(container, "Bob", **{TEAM: "reader", "shop": "reader"}), TEAM)
    owner.write("A shop sells cranes", workspace="shop")
    ada.recall("noon")
    bob.recall("noon")
    bob.recall("cranes", workspace="shop")
    assert [one["person"] for one in entries(owner)] == ["bob", "bob", "ada"]
    assert [one["workspace"] for one in entries(owner, "?person=bob")] == ["shop", TEAM]
    assert [one["person"] for one in entries(owner, f"?workspace={TEAM}")] == ["bob", "ada"]
    assert entries(owner, "?since=2999-01-01T00:00:00Z") == []
    assert len(entries(owner, "?since=2020-01-01T00:00:00Z")) == 3
    first = owner.get("/v1/access-log?limit=2").json
    rest = owner.get(f"/v1/access-log?limit=2&cursor={first['next_cursor']}").json
    assert [one["person"] for one in (*first["items"], *rest["items"])] == ["bob", "bob", "ada"]
    assert owner.get("/v1/access-log?since=yesterday").status_code == 422


def test_access_log_records_a_hook_with_its_shown_memories(ada, owner):
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "prompt": "When does the team meet?"}
    answer = ada.post("/hooks/claude-code", event)
    assert "noon" in answer.get_data(as_text=True)
    [entry] = entries(owner)
    assert (entry["action"], entry["workspace"]) == ("POST /hooks/claude-code", TEAM)
    assert entry["memories"] >= 1


def test_access_log_limits_memory_ids_and_counts_all_memories(ada, owner):
    items = [{"content": f"Crane number {number} lifts {number} tons"} for number in range(MAX_IDS_PER_ENTRY + 20)]
    assert ada.post("/v1/memories/batch", {"items": items}).status_code == 200
    [entry] = entries(owner)
    assert len(entry["memory_ids"]) == MAX_IDS_PER_ENTRY
    assert entry["memories"] == MAX_IDS_PER_ENTRY + 20


@pytest.fixture
def people(tmp_path):
    return People(HomeFile(HomePaths(tmp_path).home))


@pytest.fixture
def log(people, tmp_path):
    operations = Operations(HomeFile(tmp_path / "home.sqlite"), lambda text: text)
    log = AccessLog(people, operations)
    yield log
    log.close()


def entry(number, at=None):
    return AccessEntry(at or utc_now(), f"request-{number}", "ada", "t", TEAM, "GET /v1/stats", 200)


def test_access_log_write_also_flushes_earlier_reads(log, people):
    log.note(entry(1))
    log.write(entry(2))
    found = people.list_accesses(AccessQuery(), 10, None)
    assert [one.request_id for one in found] == ["request-2", "request-1"]


def test_access_log_write_failure_is_retried_and_fails_no_request(log, people, monkeypatch):
    def fail(_entries):
        raise StoreUnavailable("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(people, "add_accesses", fail)
        log.write(entry(1))
        log.note(entry(2))
        log.flush()
    assert "the disk is full" in log._operations.errors(workspace=None, limit=1)[0].message
    assert [one.request_id for one in log.page(AccessQuery(), 10, None).items] == ["request-2", "request-1"]


def test_access_log_prunes_old_and_excess_entries(people):
    people.add_accesses([entry(number, at=f"2026-01-{number:02}T00:00:00.000Z") for number in range(1, 10)])
    people.prune_accesses("2026-01-03T00:00:00.000Z")
    assert [one.request_id[-1] for one in people.list_accesses(AccessQuery(), 20, None)] == list("9876543")
    people.prune_accesses("2026-01-01T00:00:00.000Z", max_rows=2)
    assert [one.request_id[-1] for one in people.list_accesses(AccessQuery(), 20, None)] == list("98")


def test_access_log_page_is_visible_only_to_workspace_owners(ada, app, container, owner):
    written = ada.write("The port is 8123")
    page = app.test_client().get(f"/w/{TEAM}/access", headers=owner.auth)
    text = page.get_data(as_text=True)
    assert page.status_code == 200
    assert "POST /v1/memories" in text
    assert f"/w/{TEAM}/memories/{written}" in text
    assert f'href="/w/{TEAM}/access"' in text
    bob = PersonClient(app, container, add_person(container, "Bob", **{TEAM: "owner", "shop": "reader"}), TEAM)
    owner.write("A shop sells cranes", workspace="shop")
    assert app.test_client().get(f"/w/{TEAM}/access", headers=bob.auth).status_code == 200
    assert app.test_client().get("/w/shop/access", headers=bob.auth).status_code == 403
    theirs = app.test_client().get(f"/w/{TEAM}/timeline", headers=ada.auth)
    assert theirs.status_code == 200
    assert f'href="/w/{TEAM}/access"' not in theirs.get_data(as_text=True)


def test_sign_in_link_of_a_person_works_while_their_token_is_valid(ada, app, container):
    link = ada.post("/v1/dashboard/links").json["url"]
    browser, here = app.test_client(), {"Host": ada.auth["Host"]}
    assert browser.get(link.partition(ada.auth["Host"])[2], headers=here).status_code == 303
    assert browser.get(f"/w/{TEAM}/timeline", headers=here).status_code == 200
    assert browser.get("/w/default/timeline", headers=here).status_code == 404
    token = container.people.list_tokens()[0]
    container.people.revoke([token.id], utc_now())
    assert browser.get(f"/w/{TEAM}/timeline", headers=here).status_code == 401


# Each answers an agent or a client that waits, and stores nothing that a person decided.
READING = {
    "POST /v1/recall": "a search",
    "POST /v1/recall/why": "the reasons of a search",
    "POST /v1/prepare": "a briefing",
    "POST /hooks/claude-code": "an event that an agent waits for; what it stores is evidence of the session",
    "POST /hooks/codex": "the same of another host",
    "POST /hooks/gemini": "the same of another host",
    "POST /hooks/qwen-code": "the same of another host",
    "POST /hooks/copilot": "the same of another host",
    "POST /hooks/cursor": "the same of another host",
    "POST /hooks/antigravity": "the same of another host",
    "POST /hooks/opencode": "the same of another host",
    "POST /hooks/kilo": "the same of another host",
    "POST /hooks/pi": "the same of another host",
    "POST /hooks/cline": "the same of another host",
    "POST /v1/hook-runs": "a note in the journal that a tool was called",
    "POST /mcp": "carries tool calls, and each is a request with an entry of its own",
}


def test_every_change_is_logged_before_its_answer():
    endpoints = [endpoint for api in APIS for endpoint in api.endpoints]
    delayed = {f"{one.method} {one.path}" for one in endpoints if one.method not in ("GET", "HEAD") and not one.acts}
    assert delayed == READING.keys()


@pytest.fixture
def entries_on_disk(container):
    """Return what another process would read now: the log's own thread gets no time to write it later."""
    container.access_log._stopped.set()

    def read():
        people = People(HomeFile(container.settings.paths.home))
        found = people.list_accesses(AccessQuery(), 100, None)
        return [(one.person, one.action, one.status) for one in found]

    return read


def act_as_admin(client):
    """Change by every route who may enter; yield each action after its answer."""
    made = client.post("/v1/people", {"name": "Cy", "role": "reader", "workspace": TEAM})
    assert made.status_code == 201
    yield "POST /v1/people"
    assert client.post("/v1/people/cy/tokens", {}).status_code == 201
    yield "POST /v1/people/<person_id>/tokens"
    assert client.post("/v1/people/cy/tokens", {"device": "phone"}).status_code == 201
    yield "POST /v1/people/<person_id>/tokens"
    assert client.delete("/v1/people/cy/tokens?device=phone").status_code == 200
    yield "DELETE /v1/people/<person_id>/tokens"
    assert client.delete(f"/v1/people/cy/tokens/{made.json['token_id']}").status_code == 200
    yield "DELETE /v1/people/<person_id>/tokens/<token_id>"
    assert client.put("/v1/people/cy/grants/shop", {"role": "owner"}).status_code == 200
    yield "PUT /v1/people/<person_id>/grants/<workspace>"
    assert client.delete("/v1/people/cy/grants/shop").status_code == 200
    yield "DELETE /v1/people/<person_id>/grants/<workspace>"
    assert client.delete("/v1/people/cy").status_code == 200
    yield "DELETE /v1/people/<person_id>"


@pytest.mark.files
def test_admin_requests_are_logged_on_disk_before_the_answer(app, container, owner, entries_on_disk):
    owner.write("The team meets at noon", workspace=TEAM)
    admin = PersonClient(app, container, add_person(container, "Bo", admin=True), TEAM)
    for action in act_as_admin(admin):
        assert entries_on_disk()[0][:2] == ("bo", action)
    for path, body in (
        ("/v1/rebuild", None),
        ("/v1/jobs/decay", None),
        ("/v1/queue/retry", {}),
        ("/v1/incognito", {"session_id": "s1", "on": True}),
        ("/v1/turns", {"session_id": "s2", "messages": [{"role": "user", "content": "Is it noon?"}]}),
    ):
        assert admin.post(path, body).status_code < 300
        shown = path.replace("decay", "<name>")
        assert entries_on_disk()[0][:2] == ("bo", f"POST {shown}")


@pytest.mark.files
def test_owners_changes_to_people_are_logged(ada, owner, entries_on_disk):
    actions = list(act_as_admin(owner))
    assert entries_on_disk() == [(OWNER, action, 201 if "POST" in action else 200) for action in reversed(actions)]
    assert owner.delete("/v1/people/nobody").status_code == 404
    assert len(entries_on_disk()) == len(actions)


@pytest.mark.files
def test_commands_about_people_are_noted(home):
    run("user", "add", "Ada", "--role", "writer", "-w", TEAM)
    run("user", "grant", "ada", "shop", "reader")
    run("user", "ungrant", "ada", "shop")
    run("user", "revoke", "ada")
    run("user", "remove", "ada", "--yes")
    run("user", "remove", "ada", "--yes", code=1)
    people = People(HomeFile(home.paths.home))
    found = people.list_accesses(AccessQuery(), 100, None)
    assert {one.person for one in found} == {OWNER}
    assert [(one.action, one.workspace) for one in found] == [
        ("DELETE /v1/people/<person_id>", "default"),
        ("DELETE /v1/people/<person_id>/tokens", "default"),
        ("DELETE /v1/people/<person_id>/grants/<workspace>", "shop"),
        ("PUT /v1/people/<person_id>/grants/<workspace>", "shop"),
        ("POST /v1/people", TEAM),
    ]
