"""What is about the person: kept once for the home, told in every workspace, and nothing of a workspace told there."""

from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from itertools import count

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from config.workspace_configs import ConfigFiles, save_setting, save_workspace_setting
from pipeline.features.personal.usecases import gather_personal
from pipeline.features.snapshots.job import take_snapshot
from tests.fakes.client import CheckedClient
from tests.fakes.dashboard import sign_in
from tests.fakes.in_process import fast_settings, open_web
from web.http.app import create_app

USER = {"kind": "user"}
TABS = "I prefer tabs over spaces"
PORT = "The billing port is 8123"
NUMBERS = count()


@pytest.fixture
def tabs(client):
    """What is known about the person, written in one workspace."""
    return client.write(TABS, scope=USER, workspace="alpha")


def hook(client, event, prompt="", workspace="beta", session="s1", source="startup"):
    body = {"hook_event_name": event, "session_id": session, "cwd": "", "prompt": prompt, "source": source}
    return client.post("/hooks/claude-code", body, workspace=workspace).get_data(as_text=True)


def test_it_is_kept_once_and_found_from_everywhere(client, tabs):
    client.write(PORT, workspace="alpha")
    client.write("Another port entirely", workspace="beta")
    for workspace in ("alpha", "beta", "me"):
        assert client.find_ids("tabs or spaces", workspace=workspace) == [tabs]
        assert client.get(f"/v1/memories/{tabs}", workspace=workspace).get_json()["scope"] == {
            "kind": "user",
            "id": None,
        }
        listed = client.get("/v1/memories?scope=user", workspace=workspace).get_json()["items"]
        assert [one["id"] for one in listed] == [tabs]
    assert tabs not in str(client.get("/v1/memories", workspace="alpha").get_json())


def test_personal_recall_contains_no_workspace_memories(client, tabs):
    client.write(PORT, workspace="alpha")
    assert PORT not in str(client.recall("billing port", workspace="me", min_relevance=0))
    client.write("Something else", workspace="beta")
    assert PORT not in str(client.recall("billing port", workspace="beta", min_relevance=0))


def test_a_workspace_of_that_name_keeps_its_own_to_itself(client, tabs):
    client.write("A plan of the workspace me", workspace="me")
    client.write("Something else", workspace="beta")
    assert "A plan" not in str(client.recall("plan of the workspace", workspace="beta", min_relevance=0))


def test_one_switch_a_workspace(client, home, tabs):
    client.write(PORT, workspace="beta")
    save_workspace_setting(ConfigFiles(home.paths), "beta", "personal", False)
    assert client.find_ids("tabs or spaces", workspace="beta") == []
    assert client.get(f"/v1/memories/{tabs}", workspace="beta").status_code == 404
    assert hook(client, "SessionStart").find(TABS) == -1
    own = client.write("I like trains", scope=USER, workspace="beta")
    assert client.get(f"/v1/memories/{own}", workspace="me").status_code == 404
    assert client.find_ids("trains", workspace="beta") == [own]


def test_hooks_inject_personal_memories_in_a_new_workspace(client, tabs, digested):
    digested("me")
    said = hook(client, "SessionStart", workspace="gamma")
    assert "about the user" in said
    assert TABS in said
    assert hook(client, "UserPromptSubmit", "should I use tabs or spaces?", workspace="gamma", session="s2").count(TABS)
    # Once a session.
    again = hook(client, "UserPromptSubmit", "so tabs or spaces?", workspace="gamma", session="s2")
    assert TABS not in again


def test_it_is_changed_and_purged_from_anywhere(client, tabs, digested):
    client.write(PORT, workspace="beta")
    short = tabs[-8:]
    changed = client.patch(f"/v1/memories/{short}", {"content": "I prefer two spaces"}, workspace="beta")
    assert changed.get_json()["id"] == tabs
    assert client.delete(f"/v1/memories/{tabs}?hard=true", workspace="beta").get_json()["purged"]
    assert client.get(f"/v1/memories/{tabs}", workspace="alpha").status_code == 404
    digested("me")


def test_a_purge_includes_turns_and_impressions(client, container, digested):
    say = {"session_id": "s1", "messages": [{"role": "assistant", "content": f"So:  {TABS.lower()}, I see."}]}
    client.post("/v1/turns", say, workspace="alpha")
    take_snapshot(container.workspace("alpha").paths, datetime.now(UTC))
    known = client.write(TABS, scope=USER, workspace="beta")
    client.delete(f"/v1/memories/{known}?hard=true", workspace="beta")
    assert client.get("/v1/sessions/s1", workspace="alpha").status_code == 404
    assert [file for file in container.workspace("alpha").paths.root.rglob("*") if b"over spaces" in read(file)] == []
    digested("me")


def read(file):
    return file.read_bytes().lower() if file.is_file() else b""


def test_incognito_personal_memory_is_stored_nowhere(client):
    client.write(PORT, workspace="alpha")
    client.post("/v1/incognito", {"session_id": "s1", "on": True}, workspace="alpha")
    body = {"content": TABS, "scope": USER, "session_id": "s1"}
    assert client.post("/v1/memories", body, workspace="alpha").get_json()["outcome"] == "rejected"
    assert client.get("/v1/memories?scope=user", workspace="alpha").get_json()["items"] == []


@pytest.fixture
def switch_me(client, home, tabs):
    """Return a function that sets a switch of the personal store, which has a memory and a fact."""
    client.put(CITY, {"value": "Tampa"}, workspace="alpha")
    client.write(PORT)
    return partial(save_workspace_setting, ConfigFiles(home.paths), "me")


@pytest.mark.parametrize("workspace", ["default", "me"])
def test_read_only_personal_store_is_changed_from_no_workspace(client, tabs, switch_me, workspace):
    city, path = client.get(CITY, workspace="alpha").get_json()["id"], f"/v1/memories/{tabs}"
    body, spaces = {"content": "I like trains", "scope": USER}, {"content": "I prefer two spaces"}
    switch_me("read_only", True)
    for method, asked, sent in (
        ("POST", "/v1/memories", body),
        ("POST", "/v1/memories/batch", {"items": [body]}),
        ("PATCH", path, spaces),
        ("PATCH", f"/v1/memories/{tabs[-8:]}", spaces),
        ("DELETE", path, None),
        ("DELETE", f"{path}?hard=true", None),
        ("DELETE", f"/v1/memories/{city}", None),
        ("PUT", CITY, {"value": "Oslo"}),
        ("DELETE", CITY, None),
    ):
        assert client.call(method, asked, json=sent, workspace=workspace).status_code == 409, (method, asked)
    assert "archived" not in hook(client, "UserPromptSubmit", f"Forget that {TABS}", workspace=workspace)
    browser = sign_in(client)
    for form, fields in ((f"me/{tabs}", {"content": "x"}), (f"me/{tabs}/purge", {}), ("me", {"content": "x"})):
        assert browser.post(f"/w/{workspace}/{form}", fields).status_code == 409
    assert client.get(path, workspace="beta").get_json()["content"] == TABS
    assert client.get(CITY, workspace="beta").get_json()["value"] == "Tampa"
    switch_me("read_only", False)
    assert client.patch(path, spaces, workspace=workspace).status_code == 200


@pytest.mark.parametrize("workspace", ["default", "me"])
def test_incognito_personal_store_stores_nothing_from_any_workspace(client, switch_me, workspace):
    switch_me("incognito", True)
    body = {"content": "I like trains", "scope": USER}
    assert client.post("/v1/memories", body, workspace=workspace).get_json()["reason"] == "incognito"
    client.put(CITY, {"value": "Oslo"}, workspace=workspace)
    assert client.get(CITY, workspace="beta").get_json()["value"] == "Tampa"


def test_project_that_stores_memories_stores_those_about_the_person(tmp_path):
    settings = fast_settings(tmp_path / "home", incognito=True)
    save_setting(settings.paths, "incognito", "true")
    save_workspace_setting(ConfigFiles(settings.paths), "alpha", "incognito", False)
    with closing(open_web(settings)) as container:
        client = CheckedClient(create_app(container), container.token)
        body = {"content": TABS, "scope": USER}
        assert client.post("/v1/memories", body, workspace="beta").get_json()["reason"] == "incognito"
        tabs = client.write(TABS, scope=USER, workspace="alpha")
        assert client.patch(f"/v1/memories/{tabs}", {"pinned": True}, workspace="alpha").status_code == 200
        assert client.get(f"/v1/memories/{tabs}", workspace="me").status_code == 200


def test_a_batch_goes_where_each_belongs_in_its_order(client):
    items = [{"content": PORT}, {"content": TABS, "scope": USER}, {"content": "Third"}]
    receipts = client.post("/v1/memories/batch", {"items": items}, workspace="alpha").get_json()["results"]
    assert [one["outcome"] for one in receipts] == ["created"] * 3
    homes = [client.get(f"/v1/memories/{one['id']}", workspace="alpha").get_json()["content"] for one in receipts]
    assert homes == [PORT, TABS, "Third"]


def test_list_without_a_query_sorts_personal_memories_by_importance(client, tabs):
    client.write(PORT, workspace="alpha", importance=0.2)
    client.patch(f"/v1/memories/{tabs}", {"importance": 0.9}, workspace="alpha")
    assert client.find_ids("", workspace="alpha")[0] == tabs


ASKS = ("recall", "list", "prepare", "hook", "start", "list user", "sessions")


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.booleans(), st.sampled_from(("fact", "decision", "lesson"))), max_size=8
    ),
    st.lists(st.tuples(st.sampled_from(ASKS), st.sampled_from(("a", "b", "me"))), min_size=8, max_size=8),
)
@settings(max_examples=120, suppress_health_check=list(HealthCheck), phases=(Phase.reuse, Phase.generate))
def test_no_memory_appears_in_another_workspace_or_the_personal_store(client, drafts, asked):
    """Each word is in one memory; what is about the person is told everywhere, and nothing else is told elsewhere."""
    number = next(NUMBERS)
    names = {"a": f"a{number}", "b": f"b{number}", "me": "me"}
    words = {}
    for place, of_person, kind in drafts:
        word = f"zq{next(NUMBERS):05d}"
        fields = {"scope": USER} if of_person else {}
        client.write(f"The billing service listens on port {word}", kind=kind, workspace=names[place], **fields)
        words[word] = "everywhere" if of_person else place
    for how, place in asked:
        told = ask_somehow(client, how, names[place], f"s{next(NUMBERS)}")
        leaked = [word for word, home in words.items() if word in told and home not in ("everywhere", place)]
        assert leaked == [], (how, place)
    for word, home in words.items():
        if home == "everywhere":
            assert client.find_ids(word, workspace="me")


def ask_somehow(client, how, workspace, session):
    question = "Which port does the billing service listen on?"
    if how == "recall":
        answer = client.post("/v1/recall", {"query": question, "k": 100, "min_relevance": 0}, workspace=workspace)
    elif how == "prepare":
        answer = client.post("/v1/prepare", {"message": question}, workspace=workspace)
    elif how in ("hook", "start"):
        event = "UserPromptSubmit" if how == "hook" else "SessionStart"
        return hook(client, event, question, workspace, session)
    else:
        path = {"list": "/v1/memories", "list user": "/v1/memories?scope=user", "sessions": "/v1/sessions"}[how]
        answer = client.get(path, workspace=workspace)
    return answer.get_data(as_text=True)


def test_personal_memories_stored_in_a_workspace_are_moved_by_the_sweep(client, home, container, worker, digested):
    save_workspace_setting(ConfigFiles(home.paths), "alpha", "personal", False)
    known = client.write(TABS, scope=USER, workspace="alpha")
    goal = client.write("Learn Rust", scope=USER, kind="goal", workspace="alpha")
    assert gather_personal(container.workspace("alpha")) == 0
    save_workspace_setting(ConfigFiles(home.paths), "alpha", "personal", True)
    assert gather_personal(container.workspace("alpha")) == 1
    assert gather_personal(container.workspace("alpha")) == 0
    assert client.get(f"/v1/memories/{known}", workspace="me").get_json()["history"][-1]["detail"] == {"from": "alpha"}
    client.write("Something else", workspace="beta")
    assert client.find_ids("tabs or spaces", workspace="beta") == [known]
    assert client.get(f"/v1/memories/{goal}", workspace="alpha").get_json()["archived_at"] is None


CITY = "/v1/facts/user/city"


def test_fact_about_the_user_is_personal_and_readable_in_every_workspace(client):
    client.write(PORT, workspace="alpha")
    client.put(CITY, {"value": "Tampa"}, workspace="alpha")
    for workspace in ("alpha", "beta", "me"):
        assert client.get(CITY, workspace=workspace).get_json()["value"] == "Tampa"
        items = client.get("/v1/facts?subject=user", workspace=workspace).get_json()["items"]
        assert [one["scope"]["kind"] for one in items] == ["user"]
    assert [one["value"] for one in client.get("/v1/facts", workspace="alpha").get_json()["items"]] == ["Tampa"]
    details = {"subject": "user", "attribute": "place of residence", "value": "Oslo"}
    client.write("-", kind="keyed_fact", details={**details, "attribute": "city"}, workspace="beta")
    values = client.get(f"{CITY}/history", workspace="alpha").get_json()["items"]
    assert [one["value"] for one in values] == ["Tampa", "Oslo"]
    assert client.put("/v1/facts/user/residence", {"value": "Metz"}, workspace="beta").get_json()["attribute"] == "city"
    assert client.delete(CITY, workspace="alpha").get_json()["value"] == "Metz"
    assert client.get(CITY, workspace="beta").status_code == 404


def test_without_personal_facts_fact_routes_find_none_and_no_error(client):
    client.write(PORT, workspace="alpha")
    assert client.get("/v1/facts?subject=user", workspace="alpha").get_json()["items"] == []
    assert client.get("/v1/facts?subject=user&scope=user", workspace="alpha").get_json()["items"] == []
    assert "no such fact" in client.get(f"{CITY}/history", workspace="alpha").get_json()["detail"]
    assert "no current value" in client.get(CITY, workspace="alpha").get_json()["detail"]


@pytest.mark.parametrize(
    "asked",
    ["Where do I live?", "Wo wohne ich?", "¿Dónde vivo?", "Où est-ce que j'habite ?", "which town do I live in again?"],
)
def test_a_question_about_the_user_is_answered_in_every_workspace(client, digested, asked):
    client.put(CITY, {"value": "Tampa"}, workspace="alpha")
    client.put("/v1/facts/user/editor", {"value": "Zed"}, workspace="alpha")
    client.write("The deploy of the shop lives in a workflow on the build server", workspace="beta")
    client.write("Another port entirely", workspace="beta")
    (found, *_) = client.recall(asked, workspace="beta")["results"]
    assert (found["content"], found["relevance"] > 0.5) == ("user city: Tampa", True)
    assert "Tampa" in hook(client, "UserPromptSubmit", asked, workspace="beta", session=f"s{next(NUMBERS)}")


def test_personal_question_is_answered_in_a_project_without_memories(client):
    client.put(CITY, {"value": "Tampa"}, workspace="alpha")
    assert [hit["content"] for hit in client.recall("Where do I live?", workspace="new")["results"]] == [
        "user city: Tampa"
    ]


@pytest.mark.parametrize("said", ["thanks, I like it", "ok, ich mache das", "I think we are done here", "merci à toi"])
def test_small_talk_in_the_first_person_shows_no_fact_about_the_user(client, said):
    client.put(CITY, {"value": "Tampa"}, workspace="alpha")
    assert "Tampa" not in hook(client, "UserPromptSubmit", said, workspace="alpha", session=f"s{next(NUMBERS)}")


def test_facts_about_the_user_move_from_a_workspace_with_their_times(client, home, container):
    save_workspace_setting(ConfigFiles(home.paths), "alpha", "personal", False)
    for value, since in (("Tampa", "2026-01-01T00:00:00Z"), ("Oslo", "2026-02-01T00:00:00Z")):
        client.put(CITY, {"value": value, "valid_from": since}, workspace="alpha")
    save_workspace_setting(ConfigFiles(home.paths), "alpha", "personal", True)
    assert client.get(CITY, workspace="beta").status_code == 404
    assert gather_personal(container.workspace("alpha")) == 2
    assert client.get(CITY, workspace="beta").get_json()["value"] == "Oslo"
    assert client.get(f"{CITY}?as_of=2026-01-15T00:00:00Z", workspace="beta").get_json()["value"] == "Tampa"
