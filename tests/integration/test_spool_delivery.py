"""The delivery of the spool: in order, once, without an answer to anyone, and refusals are kept aside."""

import contextlib
import json
import os
import socket
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from config.paths import SPOOL_BEGUN, WORKSPACE_HEADER
from pipeline.features.purge.usecases import scrub_spool
from pipeline.kernel.errors import StoreUnavailable
from pipeline.kernel.store import agent_sessions
from web.hooks.spool import delivery as module
from web.hooks.spool.delivery import FIRST_PAUSE_S, LONGEST_PAUSE_S, SpoolDelivery
from web.hooks.spool.events import spool_event
from web.hooks.spool.files import SpooledRequest, add_request, describe_spool, list_files
from web.hooks.spool.writes import add_client_ids, spool_write
from web.http.app import create_app


class Spool:
    """Put requests into a container's spool, and deliver them."""

    def __init__(self, container):
        self.container = container
        self.home = str(container.settings.paths.root)
        self.now = 0.0
        self.delivery = SpoolDelivery(container, create_app(container), lambda: self.now)

    def write(self, **body):
        sent = add_client_ids("POST", "/v1/memories", body)
        spool_write(self.container.settings, "POST", "/v1/memories", sent, "default")
        return sent["id"]

    def event(self, host="claude-code", **fields):
        event = {"session_id": "s1", **fields}
        assert spool_event(self.home, f"/hooks/{host}", json.dumps(event).encode(), {})

    def deliver(self):
        """Deliver everything that can be delivered after every pause is over."""
        self.now += LONGEST_PAUSE_S
        return self.delivery.deliver_all()

    def deliver_again(self, monkeypatch):
        """Deliver everything twice, as after a crash right before each file was removed."""
        with monkeypatch.context() as patch:
            patch.setattr(self.delivery, "_remove", lambda _file: None)
            self.deliver()
        assert all(file.endswith(SPOOL_BEGUN) for file in list_files(self.home))
        # A new process knows no earlier delivery.
        self.container.hook_deliveries = type(self.container.hook_deliveries)()
        self.deliver()

    def actions(self):
        with self.container.databases.get("default").read() as db:
            return [(action.target, action.at) for action in agent_sessions.list_actions(db, "s1", "", 100)]

    def errors(self):
        return [error.message for error in self.container.operations.errors(workspace=None, limit=10)]


@pytest.fixture
def spool(container):
    return Spool(container)


def list_memories(client):
    return client.get("/v1/memories").get_json()["items"]


def test_spooled_writes_delivered_twice_are_stored_once_with_their_time(spool, client, monkeypatch):
    ids = [spool.write(content=f"Service {number} listens on port {number}") for number in range(3)]
    spool.write(content="Service 0 listens on port 0")
    spool.deliver_again(monkeypatch)
    memories = list_memories(client)
    assert sorted(memory["id"] for memory in memories) == sorted(ids)
    assert all(memory["occurred_at"] < memory["created_at"] for memory in memories)
    history = client.get(f"/v1/memories/{ids[0]}").get_json()["history"]
    assert [entry["event"] for entry in history] == ["merged"]
    assert describe_spool(spool.home).files == 0


def test_events_are_recorded_once_although_they_are_delivered_twice(spool, client, monkeypatch):
    client.write("Billing listens on port 8123")
    spool.event(hook_event_name="UserPromptSubmit", prompt="remember this: staging uses port 9000")
    for number in range(3):
        spool.event(
            hook_event_name="PostToolUse",
            tool_name="Edit",
            tool_input={"file_path": f"{number}.py"},
            tool_use_id=f"t{number}",
        )
    commit = {"command": "git commit -m moved"}
    spool.event(hook_event_name="PostToolUse", tool_name="Bash", tool_input=commit, tool_use_id="commit")
    spool.event(hook_event_name="Stop")
    spool.deliver_again(monkeypatch)
    assert [target for target, _ in spool.actions()] == ["0.py", "1.py", "2.py", commit["command"]]
    contents = [memory["content"] for memory in list_memories(client)]
    assert len([content for content in contents if "staging uses port 9000" in content]) == 1
    summaries = [memory for memory in list_memories(client) if memory["kind"] == "activity"]
    assert len(summaries) == 1
    runs = client.get("/v1/hook-runs").get_json()["items"]
    assert sorted(run["event"] for run in runs) == ["PostToolUse"] * 4 + ["Stop", "UserPromptSubmit"]


def test_a_turn_that_a_host_sends_in_its_event_is_stored_once(spool, container, monkeypatch):
    prompt = "We decided to keep the staging database on port 9000"
    spool.event("gemini", hook_event_name="AfterAgent", prompt=prompt, prompt_response="Understood, port 9000 it is.")
    spool.deliver_again(monkeypatch)
    with container.databases.get("default").read() as db:
        rows = db.execute("SELECT role, count(*) FROM turn GROUP BY role ORDER BY role").fetchall()
    assert [tuple(row) for row in rows] == [("assistant", 1), ("user", 1)]


def test_a_prompt_from_the_spool_shows_nothing_to_its_session(spool, client, digested):
    client.write("Billing listens on port 8123")
    digested()
    prompt = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "prompt": "Which port does billing listen on?"}
    spool.event(**prompt)
    spool.deliver()
    # The memory counts as new: the agent never saw the answer of the delivered event.
    shown = client.post("/hooks/claude-code", prompt | {"prompt_id": "later"}).get_json()
    assert "8123" in shown["hookSpecificOutput"]["additionalContext"]


def test_a_command_to_forget_runs_at_the_first_delivery_only(spool, client, digested, monkeypatch):
    first = client.write("The billing service listens on port 8123")
    digested()
    spool.event(hook_event_name="UserPromptSubmit", prompt="forget that the billing service listens on port 8123")
    with monkeypatch.context() as patch:
        patch.setattr(spool.delivery, "_remove", lambda _file: None)
        spool.deliver()
    assert client.get(f"/v1/memories/{first}").get_json()["archived_at"] is not None
    client.post(f"/v1/memories/{first}/restore")
    spool.deliver()
    assert client.get(f"/v1/memories/{first}").get_json()["archived_at"] is None


def test_rejected_request_is_logged_and_quarantined(spool, client, monkeypatch):
    monkeypatch.setattr(module, "MOST_REFUSED", 2)
    for number in range(3):
        spool.write(content=f"text {number}", kind="rumour")
    add_request(spool.home, SpooledRequest("POST", "/v1/nowhere", {}, {}))
    kept = spool.write(content="A valid text after the invalid ones")
    assert spool.deliver() == 5
    assert [memory["id"] for memory in list_memories(client)] == [kept]
    state = describe_spool(spool.home)
    assert (state.files, state.refused) == (0, 2)
    assert any("HTTP 422" in error and "kind" in error for error in spool.errors())


def test_a_damaged_file_does_not_stop_the_others(spool, client):
    spool.write(content="first")
    (spool.container.settings.paths.spool / list_files(spool.home)[0]).write_text('{"method": ')
    kept = spool.write(content="second")
    spool.deliver()
    assert [memory["id"] for memory in list_memories(client)] == [kept]
    assert describe_spool(spool.home).refused == 1


def test_a_busy_store_keeps_the_order(spool, client, monkeypatch):
    ids = [spool.write(content=f"text {number}", session_id="s1") for number in range(2)]
    spool.event(hook_event_name="UserPromptSubmit", prompt="remember this: staging uses port 9000")
    waiting = list_files(spool.home)

    def fail(*_args, **_rest):
        raise StoreUnavailable("database is locked")

    with monkeypatch.context() as patch:
        patch.setattr("pipeline.features.memories.usecases.commit", fail)
        for _ in range(module.MOST_ATTEMPTS + 1):
            assert spool.deliver() == 0
        assert list_files(spool.home) == waiting
    with monkeypatch.context() as patch:
        patch.setattr("web.hooks.claude_code.record_spooled_prompt", fail)
        assert spool.deliver() == 2
        assert list_files(spool.home) == waiting[2:]
    assert spool.deliver() == 1
    assert {memory["id"] for memory in list_memories(client)} > set(ids)


def answer(monkeypatch, choose_status):
    """Answer each request by a function of it instead of running it; return the contents of the sent ones."""
    sent = []

    def send(_self, request, _file, **_rest):
        sent.append(request.body["content"])
        return choose_status(request), "database is locked"

    monkeypatch.setattr(module.SpoolDelivery, "_send", send)
    return sent


def put(spool, content, workspace="default", **body):
    headers = {WORKSPACE_HEADER: workspace}
    add_request(spool.home, SpooledRequest("POST", "/v1/memories", headers, {"content": content, **body}))


def test_failed_spooled_request_delays_only_its_session_and_workspace(spool, monkeypatch):
    put(spool, "1", "damaged")
    put(spool, "2", "damaged", session_id="s1")
    put(spool, "3", "sound")
    put(spool, "4", "sound", session_id="s1")
    put(spool, "5", "third")
    sent = answer(monkeypatch, lambda request: 503 if request.headers[WORKSPACE_HEADER] == "damaged" else 201)
    # The fourth belongs to the session of the second.
    assert (spool.deliver(), sent) == (2, ["1", "3", "5"])
    sent.clear()
    assert (spool.deliver(), sent) == (0, ["1"])
    sent.clear()
    answered = answer(monkeypatch, lambda _request: 201)
    assert (spool.deliver(), answered) == (3, ["1", "2", "4"])


def test_a_pass_ends_after_some_requests_that_must_wait(spool, monkeypatch):
    count = 3 * module.MOST_WAITING
    for number in range(count):
        put(spool, str(number), f"w{number}")
    sent = answer(monkeypatch, lambda request: 201 if request.body["content"] == str(count - 1) else 503)
    spool.delivery.deliver_all()
    assert sent == [str(number) for number in range(module.MOST_WAITING)]
    # Those wait longer and longer, so the turn comes to the others.
    while str(count - 1) not in sent:
        spool.now += FIRST_PAUSE_S
        before = len(sent)
        spool.delivery.deliver_all()
        assert len(sent) - before <= module.MOST_WAITING + 1
        assert spool.now < LONGEST_PAUSE_S
    assert len(list_files(spool.home)) == count - 1


@pytest.mark.parametrize("status", [401, 408, 429])
def test_a_refusal_that_every_request_would_get_ends_the_pass(spool, monkeypatch, status):
    for number in range(3):
        put(spool, str(number), f"w{number}")
    sent = answer(monkeypatch, lambda _request: status)
    assert (spool.deliver(), sent) == (0, ["0"])
    # It is tried again in the next pass.
    assert (spool.delivery.deliver_all(), sent) == (0, ["0", "0"])


def test_a_request_that_waits_for_long_is_logged_once(spool, monkeypatch):
    put(spool, "1", "damaged")
    answer(monkeypatch, lambda _request: 503)
    for _ in range(12):
        spool.deliver()
    assert len([error for error in spool.errors() if "again and again" in error]) == 1
    assert len(list_files(spool.home)) == 1


@pytest.mark.files
@settings(suppress_health_check=list(HealthCheck), max_examples=15)
@given(
    requests=st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["", "s1", "s2"])), max_size=8),
    statuses=st.lists(st.sampled_from([201, 201, 503, 500, 429]), max_size=40),
)
def test_requests_of_a_session_and_of_a_workspace_keep_their_order(container, requests, statuses):
    container.settings.paths.spool.mkdir(exist_ok=True)
    spool, answers = Spool(container), iter(statuses)
    for number, (workspace, session) in enumerate(requests):
        put(spool, str(number), workspace, **({"session_id": session} if session else {}))
    arrived = []

    def choose_status(request):
        status = next(answers, 201)
        if status == 201:
            arrived.append(int(request.body["content"]))
        return status

    with pytest.MonkeyPatch.context() as patch:
        answer(patch, choose_status)
        while list_files(spool.home):
            spool.deliver()
    for lane in ("a", "b", "s1", "s2"):
        of_lane = [number for number in arrived if lane in requests[number]]
        assert of_lane == sorted(of_lane)
    # An unexpected error is repeated, and five of them move a request aside.
    assert len(arrived) == len(set(arrived))


def test_an_unexpected_error_is_refused_after_some_attempts(spool, client, monkeypatch):
    spool.write(content="poison")
    kept = spool.write(content="harmless")
    whole = module.SpoolDelivery._send

    def send(self, request, *args, **rest):
        return (500, "broken") if request.body["content"] == "poison" else whole(self, request, *args, **rest)

    monkeypatch.setattr(module.SpoolDelivery, "_send", send)
    for _ in range(module.MOST_ATTEMPTS):
        spool.deliver()
    assert [memory["id"] for memory in list_memories(client)] == [kept]


def test_a_persons_request_cannot_mark_itself_as_spooled(client):
    """The header of the spool changes nothing but the time and the answer of an event."""
    body = {"hook_event_name": "SessionStart", "session_id": "s1", "source": "startup"}
    for value in ("x", "1" * 30, "-5", "\u0663"):
        answer = client.post(
            "/hooks/claude-code", body, headers={"X-Reverie-Spooled": value.encode().decode("latin-1")}
        )
        assert answer.status_code == 200


def link_to(target):
    return lambda path: path.symlink_to(target)


def write(content):
    return lambda path: path.write_bytes(content)


def write_request(**changed):
    """Write a request with some parts of a wrong type."""
    parts = {"method": "POST", "path": "/hooks/codex", "headers": {}, "body": {}} | changed
    return write(json.dumps(parts).encode())


def make_unreadable(path):
    path.write_text("{}")
    path.chmod(0)


def make_large(path):
    path.touch()
    os.truncate(path, 2**31)


def bind_socket(path):
    # The path of a socket is short.
    with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)


ODD_FILES = {
    "folder": Path.mkdir,
    "full folder": lambda path: (path / "inner").mkdir(parents=True),
    "pipe": os.mkfifo,
    "socket": bind_socket,
    "dangling link": link_to("nowhere"),
    "link to a device": link_to("/dev/zero"),
    "link to a folder": link_to("/"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "unreadable": make_unreadable,
    "large": make_large,
    "empty": write(b""),
    "binary": write(bytes(range(256)) * 10),
    "no UTF-8": write(b'{"method": "\xff"}'),
    "cut": write(b'{"method": "POST", "path": "/v1/mem'),
    "deep": write(b"[" * 100_000),
    "list": write(b"[1, 2]"),
    "null": write(b"null"),
    "large number": write(b"1e400"),
    "long number": write(b"1" * 10_000),
    "no parts": write(b"{}"),
    "list of headers": write_request(headers=[["a", "b"]]),
    "header of the wrong type": write_request(headers={"a": 1}),
    "header with a line break": write_request(headers={"a": "b\r\nc"}),
    "method of the wrong type": write_request(method=["POST"]),
    "unknown method": write_request(method="B R\0EW"),
    "path of the wrong type": write_request(path=7),
    "address as a path": write_request(path="http://[::1"),
    "relative path": write_request(path="../../x?y#z"),
    "surrogate": write_request(body={"cwd": "\ud800"}),
    "list as a body": write_request(body=[3]),
    "session of the wrong type": write_request(body={"session_id": {}}),
    "deep body": write(b'{"method": "POST", "path": "/", "headers": {}, "body": ' + b"[" * 900 + b"]" * 900 + b"}"),
}


@pytest.mark.skipif(os.name != "posix", reason="pipes, devices and sockets are POSIX's")
@pytest.mark.parametrize("kind", ODD_FILES)
def test_invalid_spool_file_is_quarantined_and_delays_no_request(spool, client, kind):
    spool.write(content="Service 1 listens on port 8001")
    name = f"{7:020d}-0123456789.json"
    ODD_FILES[kind](Path(spool.home) / "spool" / name)
    spool.deliver()
    assert len(list_memories(client)) == 1
    for _ in range(module.MOST_ATTEMPTS):
        spool.deliver()
    assert list_files(spool.home) == []
    assert describe_spool(spool.home).files == 0
    scrub_spool(Path(spool.home) / "spool", lambda _workspace, text: text == "never")


@pytest.mark.parametrize(
    "name", ["\u00b2" * 20 + ".json", "1.json", "0" * 20 + "\n.json", "0" * 20 + "\udcff.json", "0" * 20 + ".json"]
)
def test_a_file_with_an_odd_name_delays_no_request(spool, client, name):
    spool.write(content="Service 1 listens on port 8001")
    (Path(spool.home) / "spool" / name).write_text("{}")
    spool.deliver()
    assert len(list_memories(client)) == 1
    assert describe_spool(spool.home).files == 0


def test_file_in_place_of_the_refused_folder_delays_no_request(spool, client):
    folder = Path(spool.home) / "spool"
    spool.write(content="Service 1 listens on port 8001")
    (folder / f"{7:020d}-0123456789.json").write_text("{}")
    (folder / "refused").write_text("")
    spool.deliver()
    assert len(list_memories(client)) == 1
