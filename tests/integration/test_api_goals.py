import pytest

WORDS = "Move billing to another port"


def set_goal(client, title=WORDS, **fields):
    return client.post("/v1/goals", {"title": title, **fields})


def list_goals(client, query=""):
    return [goal["title"] for goal in client.get(f"/v1/goals{query}").get_json()["items"]]


def change(client, goal_id, **fields):
    return client.patch(f"/v1/goals/{goal_id}", fields)


def test_a_goal_starts_open(client):
    response = set_goal(client)
    goal = response.get_json()
    assert response.status_code == 201
    assert (goal["title"], goal["status"], goal["progress"], goal["due_at"]) == (WORDS, "open", 0.0, None)
    assert goal["outcome"] == "created"
    assert goal["importance"] == 0.6


def test_a_goal_is_a_memory(client):
    goal = set_goal(client, progress=0.25, due_at="2026-03-01T00:00:00+01:00", tags=["ops"]).get_json()
    memory = client.get(f"/v1/memories/{goal['id']}").get_json()
    assert memory["kind"] == "goal"
    assert memory["tags"] == ["ops"]
    assert memory["details"] == {"status": "open", "progress": 0.25, "due_at": "2026-02-28T23:00:00.000Z"}
    assert client.find_ids("move billing") == [goal["id"]]


def test_a_goal_comes_nearer_until_it_is_done(client):
    goal_id = set_goal(client, due_at="2026-03-01T00:00:00Z").get_json()["id"]
    change(client, goal_id, status="in_progress", progress=0.5)
    goal = change(client, goal_id, status="done", progress=1).get_json()
    assert (goal["status"], goal["progress"], goal["due_at"]) == ("done", 1.0, "2026-03-01T00:00:00.000Z")


def test_due_date_can_be_removed(client):
    goal_id = set_goal(client, due_at="2026-03-01T00:00:00Z").get_json()["id"]
    assert change(client, goal_id, progress=0.1).get_json()["due_at"] is not None
    assert change(client, goal_id, due_at=None).get_json()["due_at"] is None


def test_a_new_title_is_found_and_the_old_one_stays_in_the_history(client, digested):
    goal_id = set_goal(client).get_json()["id"]
    change(client, goal_id, title="Move the archive")
    digested()
    assert client.find_ids("archive") == [goal_id]
    memory = client.get(f"/v1/memories/{goal_id}").get_json()
    assert [entry["content"] for entry in memory["history"]] == [WORDS]
    assert memory["details"]["status"] == "open"


def test_goals_are_listed_newest_first_and_by_status(client):
    set_goal(client, "First")
    set_goal(client, "Second", status="done")
    set_goal(client, "Third")
    client.write("No goal at all")
    assert list_goals(client) == ["Third", "Second", "First"]
    assert list_goals(client, "?status=open") == ["Third", "First"]
    assert list_goals(client, "?status=done") == ["Second"]
    assert list_goals(client, "?status=dropped") == []


def test_goals_are_listed_page_by_page(client):
    for number in range(5):
        set_goal(client, f"Goal {number}")
    seen, cursor = [], ""
    while cursor is not None:
        page = client.get(f"/v1/goals?limit=2{cursor and f'&cursor={cursor}'}").get_json()
        seen += [goal["title"] for goal in page["items"]]
        cursor = page["next_cursor"]
    assert seen == [f"Goal {number}" for number in (4, 3, 2, 1, 0)]


def test_a_goal_is_listed_to_its_owner_only(client):
    set_goal(client, "Own", scope={"kind": "agent", "id": "a"})
    assert list_goals(client) == []
    assert list_goals(client, "?agent=b") == []
    assert list_goals(client, "?agent=a") == ["Own"]


def test_an_archived_goal_is_not_listed(client):
    client.delete(f"/v1/memories/{set_goal(client).get_json()['id']}")
    assert list_goals(client) == []


def test_setting_a_goal_again_keeps_its_progress_and_updates_its_fields(client):
    first = set_goal(client).get_json()
    change(client, first["id"], status="in_progress", progress=0.5)
    again = set_goal(client, due_at="2026-03-01T00:00:00Z").get_json()
    assert (again["id"], again["outcome"]) == (first["id"], "merged")
    assert (again["status"], again["progress"], again["due_at"]) == ("in_progress", 0.5, "2026-03-01T00:00:00.000Z")


def test_setting_a_finished_goal_again_reopens_it(client):
    first = set_goal(client, status="done", progress=1.0).get_json()
    again = set_goal(client).get_json()
    assert (again["id"], again["status"], again["progress"]) == (first["id"], "open", 0.0)


def test_memory_of_another_kind_is_not_a_goal(client):
    fact = client.write(WORDS)
    assert set_goal(client).status_code == 409
    assert change(client, fact, progress=0.5).status_code == 404
    assert change(client, "01ARZ3NDEKTSV4RRFFQ69G5FAV", progress=0.5).status_code == 404


def test_a_goal_from_an_import_is_evidence(client):
    goal_id = set_goal(client, source="import").get_json()["id"]
    assert client.get(f"/v1/memories/{goal_id}").get_json()["trust"] == "evidence"
    [goal] = client.get("/v1/goals").get_json()["items"]
    assert (goal["source"], goal["trust"], goal["instructs"]) == ("import", "evidence", False)


def test_in_an_incognito_session_no_goal_is_set(client):
    client.post("/v1/incognito", {"session_id": "s1", "on": True})
    response = set_goal(client, session_id="s1")
    assert response.status_code == 409
    assert "the user wants nothing of this session" in response.get_json()["detail"]
    assert list_goals(client) == []


@pytest.mark.parametrize(
    ("body", "loc"),
    [
        ({}, "title"),
        ({"title": " "}, "title"),
        ({"title": "x", "progress": 1.5}, "progress"),
        ({"title": "x", "progress": 50}, "progress"),
        ({"title": "x", "progress": "0.5"}, "progress"),
        ({"title": "x", "status": "finished"}, "status"),
        ({"title": "x", "due_at": "tomorrow"}, "due_at"),
        ({"title": "x", "due_at": "0001-01-01T00:00:00+14:00"}, "due_at"),
        ({"title": "x", "nonsense": 1}, "nonsense"),
    ],
)
def test_invalid_goal_fields_are_rejected_by_name(client, body, loc):
    response = client.post("/v1/goals", body)
    assert response.status_code == 422
    assert [error["loc"] for error in response.get_json()["errors"]] == [loc]


def test_a_refused_change_changes_nothing(client):
    goal_id = set_goal(client, progress=0.5).get_json()["id"]
    assert change(client, goal_id, status="done", progress=2).status_code == 422
    assert client.get("/v1/goals").get_json()["items"][0]["status"] == "open"
