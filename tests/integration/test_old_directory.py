"""What a user sees of a data directory that commit d0a0c2d4 left: all of it."""

import pytest

from pipeline.features.snapshots.job import delete_matching_texts
from tests.fakes.client import CheckedClient
from tests.fakes.in_process import fast_settings, open_web
from tests.fakes.kept_directories import OLDEST, unpack_directory
from web.http.app import create_app

# The person `berta` of this directory.
TOKEN = "rvp_y4YCQhR_E6CDruWB3DcoBn-3Qees6PAeUrSEadHH2IU"

pytestmark = pytest.mark.files

ACTIVE = {
    "Berta knows the release train",
    "Deploys of the billing service need the VPN",
    "Run the migrations before the rollout",
    "Ship the new checkout",
    "The canal of the payments team is #pay",
    "The staging database listens on port 6543",
    "The staging database runs in the Dublin region",
    "The style guide asks for tabs",
    "The token of the sandbox ends in June",
    "We chose PostgreSQL for the ledger because of its row locks",
    "checkout service port: 9090",
}


@pytest.fixture
def settings(tmp_path):
    return fast_settings(unpack_directory(OLDEST, tmp_path / "home"))


@pytest.fixture
def container(settings):
    container = open_web(settings)
    yield container
    container.close()


@pytest.fixture
def client(container):
    return CheckedClient(create_app(container), container.token)


def list_items(client, path, **rest):
    return client.get(path, **rest).get_json()["items"]


def test_every_memory_is_there(client):
    assert {item["content"] for item in list_items(client, "/v1/memories?limit=100")} == ACTIVE
    archived = {item["content"] for item in list_items(client, "/v1/memories?archived=true&limit=100")}
    # The second is a repetition, written on a branch.
    assert archived == {"A note that was archived", "The staging database listens on port 6543"}
    assert len(list_items(client, "/v1/memories?limit=100", workspace="project-1afbf223")) == 5
    assert [item["content"] for item in list_items(client, "/v1/memories", workspace="me")] == [
        "Ann prefers short answers"
    ]


def test_values_goals_and_the_history_of_a_memory_are_there(client):
    values = client.get("/v1/facts/checkout-service/port/history").get_json()["items"]
    assert sorted((item["value"], item["valid_to"] is None) for item in values) == [("8080", False), ("9090", True)]
    (goal,) = list_items(client, "/v1/goals")
    assert (goal["title"], goal["status"], goal["progress"]) == ("Ship the new checkout", "in_progress", 0.4)
    edited = next(item for item in list_items(client, "/v1/memories?limit=100") if "Dublin" in item["content"])
    record = client.get(f"/v1/memories/{edited['id']}").get_json()
    assert (record["pinned"], record["tags"], record["metadata"]) == (True, ["staging"], {"team": "storage"})
    assert "The staging database runs in the Frankfurt region" in str(record["history"])


def test_sessions_lessons_and_runs_of_hooks_are_there(client):
    told = client.get("/v1/sessions/s-2").get_json()
    assert "the queue of the mailer is called heron" in str(told)
    assert "make test" in str(client.get("/v1/sessions/s-1").get_json())
    assert len(list_items(client, "/v1/sessions", workspace="project-1afbf223")) == 1
    (lesson,) = list_items(client, "/v1/lessons")
    assert lesson["content"] == "Run the migrations before the rollout"
    assert lesson["followed"] == 1
    assert {item["event"] for item in list_items(client, "/v1/hook-runs")} >= {"SessionStart", "UserPromptSubmit"}
    assert [item["session_id"] for item in list_items(client, "/v1/incognito")] == ["s-9"]


def test_people_their_tokens_and_their_requests_are_there(client):
    people = {item["id"]: item for item in list_items(client, "/v1/people")}
    assert people.keys() == {"berta", "carl", "dora", "emil"}
    assert (people["dora"]["email"], people["emil"]["subject"]) == ("dora@example.org", "subject-8")
    berta = {"headers": {"Authorization": f"Bearer {TOKEN}"}}
    assert client.get("/v1/memories", **berta).status_code == 200
    assert client.get("/v1/memories", workspace="project-1afbf223", **berta).status_code == 404
    assert len(list_items(client, "/v1/access-log")) >= 6


def test_deleted_text_is_removed_from_old_snapshots(settings, container):
    folder = settings.paths.workspace("default").root
    database = container.databases.get("default")
    snapshots = settings.paths.workspace("default").snapshots
    assert any(b"heron" in file.read_bytes() for file in snapshots.glob("*.sqlite"))
    delete_matching_texts(database, snapshots, lambda text: "heron" in text)
    assert [file for file in folder.rglob("*.sqlite*") if b"is called heron" in file.read_bytes()] == []
