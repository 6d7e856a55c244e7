"""A change that names the state it is meant for is made in that state only."""

import threading

import pytest

PATCHES = [
    {"content": "The port is 9000"},
    {"importance": 0.9},
    {"tags": ["ports", "ops"]},
    {"metadata": {"pr": 12}},
    {"pinned": True},
    {"details": {"reason": "The old one was taken"}},
    {"trust": "evidence"},
    {"anchor": {"path": "src/guard.py"}},
    {"branch": "main"},
    {"expires_at": "2099-01-01"},
    {"sensitivity": "private"},
]


@pytest.fixture
def memory_id(client):
    return client.write("The port is 8123", kind="decision", tags=["ports"], metadata={"pr": 11})


def read_tag(client, memory_id):
    tag = client.get(f"/v1/memories/{memory_id}").headers["ETag"]
    assert tag.startswith('"')
    return tag


def patch(client, memory_id, body, tags):
    return client.patch(f"/v1/memories/{memory_id}", body, headers={"If-Match": tags})


def test_a_read_and_an_unrelated_write_leave_the_tag_as_it_is(client, memory_id):
    tag = read_tag(client, memory_id)
    client.recall("Which port is it?")
    client.write("Another memory")
    assert read_tag(client, memory_id) == tag
    assert client.patch(f"/v1/memories/{memory_id}", {"tags": ["ports"]}).headers["ETag"] == tag


@pytest.mark.parametrize("body", PATCHES, ids=lambda body: next(iter(body)))
def test_every_field_that_can_be_changed_changes_the_tag(client, memory_id, body):
    tag = read_tag(client, memory_id)
    answer = patch(client, memory_id, body, tag)
    assert answer.status_code == 200
    assert answer.headers["ETag"] == read_tag(client, memory_id) != tag
    before = client.get(f"/v1/memories/{memory_id}").get_json()
    refused = patch(client, memory_id, {"content": "Something else", "tags": ["late"]}, tag)
    assert refused.status_code == 412
    assert "Read it again" in refused.get_json()["detail"]
    assert client.get(f"/v1/memories/{memory_id}").get_json() == before


def test_weak_tags_never_match_and_lists_and_a_star_do(client, memory_id):
    tag = read_tag(client, memory_id)
    for wrong in (f"W/{tag}", '"other"', f'"other", W/{tag}', '""', "", ","):
        assert patch(client, memory_id, {"pinned": True}, wrong).status_code == 412, wrong
    for right in (tag, f'"other", {tag}', f'W/"other" ,{tag}', "*"):
        assert patch(client, memory_id, {"tags": ["ports"]}, right).status_code == 200, right


def test_a_list_of_states_without_end_is_refused(client, memory_id):
    answer = patch(client, memory_id, {"importance": 0.9}, ", ".join([read_tag(client, memory_id)] * 200))
    assert answer.status_code == 400
    assert answer.get_json()["detail"] == "If-Match must have at most 4096 characters."


def test_a_memory_that_does_not_exist_is_not_found(client):
    for tags in ("*", '"other"'):
        assert patch(client, "01M0000000000000000000NONE", {"pinned": True}, tags).status_code == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", ""),
        ("DELETE", "?hard=true"),
        ("POST", "/restore"),
        ("POST", "/move"),
        ("POST", "/share"),
        ("POST", "/edges"),
    ],
)
def test_every_change_of_a_memory_looks_at_the_tag(client, memory_id, method, path):
    other = client.write("Another memory")
    tag = read_tag(client, memory_id)
    client.patch(f"/v1/memories/{memory_id}", {"pinned": True})
    bodies = {"/move": {"workspace": "other"}, "/edges": {"kind": "cause", "to": other}}
    sent = {"json": bodies[path]} if path in bodies else {}
    answer = client.call(method, f"/v1/memories/{memory_id}{path}", headers={"If-Match": tag}, **sent)
    assert answer.status_code == 412
    assert client.get(f"/v1/memories/{memory_id}").get_json()["archived_at"] is None


def test_archive_and_restore_change_the_tag(client, memory_id):
    tags = [read_tag(client, memory_id)]
    assert client.delete(f"/v1/memories/{memory_id}", headers={"If-Match": tags[0]}).status_code == 200
    tags.append(read_tag(client, memory_id))
    assert patch(client, memory_id, {"pinned": True}, tags[0]).status_code == 412
    restored = client.post(f"/v1/memories/{memory_id}/restore", headers={"If-Match": tags[1]})
    assert (restored.status_code, restored.headers["ETag"]) == (200, tags[0])
    hard = client.delete(f"/v1/memories/{memory_id}?hard=true", headers={"If-Match": tags[0]})
    assert hard.get_json()["purged"] is True


def test_of_two_changes_at_once_one_is_made(app, client, memory_id):
    tag, statuses = read_tag(client, memory_id), []
    ready = threading.Barrier(4)

    def change(number):
        ready.wait()
        headers = client.auth | {"If-Match": tag}
        answer = app.test_client().patch(f"/v1/memories/{memory_id}", json={"content": f"{number}"}, headers=headers)
        statuses.append(answer.status_code)

    threads = [threading.Thread(target=change, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200, 412, 412, 412]


def test_old_tags_and_metadata_stay_in_the_history(client, memory_id):
    for body in ({"tags": ["ops"]}, {"metadata": {"pr": 12}}, {"tags": ["ops"]}, {"pinned": True}):
        client.patch(f"/v1/memories/{memory_id}", body)
    client.patch(f"/v1/memories/{memory_id}", {"content": "The port is 9000", "tags": []})
    history = client.get(f"/v1/memories/{memory_id}").get_json()["history"]
    assert [(entry["event"], entry["content"], entry["detail"]) for entry in history] == [
        ("labels_changed", None, {"tags": ["ports"]}),
        ("labels_changed", None, {"metadata": {"pr": 11}}),
        ("edited", "The port is 8123", {"tags": ["ops"]}),
    ]
