"""A subagent starts with a brief, and its report becomes a session of its own, linked to its parent."""

from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from config.workspace_configs import ConfigFiles, save_workspace_setting
from pipeline.prompt.subagents.brief import MOST_BYTES
from pipeline.prompt.tool_calls.guards import ToolGuard
from tests.fakes.in_process import flush_notes

TASK = "Release the package with `make publish` and push the tag"
RULE = "Never run make publish before the changelog is written"
REPORT = "We decided to keep the tag 1.2.3 because the registry refuses a second upload of sprocket."


def send(client, name, headers=(), **fields):
    event = {"hook_event_name": name, "session_id": "s1", "prompt_id": "p1", **fields}
    return client.post("/hooks/claude-code", event, headers=dict(headers))


def context(response):
    assert response.status_code == 200
    output = response.get_json(silent=True)
    return "" if output is None else output["hookSpecificOutput"]["additionalContext"]


def spawn(client, agent_id="a1", role="general-purpose", task=TASK, **fields):
    call = {"subagent_type": role, "prompt": task}
    send(client, "PreToolUse", tool_name="Agent", tool_input=call, tool_use_id=f"toolu-{agent_id}", **fields)
    return context(send(client, "SubagentStart", agent_id=agent_id, agent_type=role, **fields))


def stop(client, container, agent_id="a1", role="general-purpose", report=REPORT, **fields):
    response = send(client, "SubagentStop", agent_id=agent_id, agent_type=role, last_assistant_message=report, **fields)
    assert response.status_code == 200
    flush_notes(container)


@pytest.fixture
def project(client, digested):
    client.write(RULE, kind="lesson")
    client.write("Billing listens on port 8123")
    digested()
    return client


def test_a_subagent_gets_the_rules_of_its_task(project):
    brief = spawn(project)
    assert RULE in brief
    assert len(brief.encode()) <= MOST_BYTES


def test_a_brief_has_at_most_800_bytes_in_any_script(client, digested):
    for number in range(40):
        client.write(f"Правило {number}: никогда не публикуй пакет без журнала изменений номер {number}", kind="lesson")
    digested()
    assert 0 < len(spawn(client, task="Опубликуй пакет и журнал изменений").encode()) <= MOST_BYTES


@pytest.mark.parametrize("role", ["Explore", "explore-agent", "codebase-investigator", "fork", "Plan"])
def test_a_role_that_searches_gets_no_brief(project, role):
    assert spawn(project, role=role) == ""


def test_a_question_gets_no_brief(project):
    assert spawn(project, task="Where do we publish the package?") == ""


def test_a_role_can_be_left_out(project, home):
    switch = partial(save_workspace_setting, ConfigFiles(home.paths), "default", "no_brief_roles")
    switch("test-runner General-Purpose")
    assert spawn(project) == ""
    switch("test-runner")
    assert spawn(project, "a2", prompt_id="p2") != ""


def test_each_of_several_subagents_gets_the_brief_of_its_task(project):
    for number, task in enumerate((TASK, "Where do we publish?", TASK)):
        call = {"subagent_type": "worker", "prompt": task}
        send(project, "PreToolUse", tool_name="Agent", tool_input=call, tool_use_id=f"t{number}")
    briefs = [context(send(project, "SubagentStart", agent_id=f"w{n}", agent_type="worker")) for n in range(3)]
    assert [bool(brief) for brief in briefs] == [True, False, True]


def test_a_spawn_that_comes_twice_is_briefed_once(project):
    call = {"subagent_type": "worker", "prompt": TASK}
    for _ in range(2):
        send(project, "PreToolUse", tool_name="Agent", tool_input=call, tool_use_id="t1")
    first, second = (context(send(project, "SubagentStart", agent_id="w", agent_type="worker")) for _ in range(2))
    assert first
    assert second == ""
    assert context(send(project, "SubagentStart", agent_id="another", agent_type="worker")) == ""


def call_agent(client, call_id, task, name="PreToolUse", **fields):
    call = {"subagent_type": "worker", "prompt": task}
    return send(client, name, tool_name="Agent", tool_input=call, tool_use_id=call_id, **fields)


def start(client, agent_id):
    return context(send(client, "SubagentStart", agent_id=agent_id, agent_type="worker"))


def test_a_failed_call_leaves_its_task_to_no_other_subagent(project):
    call_agent(project, "t1", TASK)
    call_agent(project, "t2", "Where do we publish?")
    call_agent(project, "t1", TASK, "PostToolUseFailure", error="The agent could not be started")
    assert start(project, "w1") == ""


def test_a_refused_call_leaves_its_task_to_no_other_subagent(project, container, monkeypatch):
    guard = ToolGuard("deny", "not now", (), ())
    with monkeypatch.context() as patch:
        patch.setattr(container.agents.sessions, "guard_tool_use", lambda *_given, **_named: guard)
        call_agent(project, "t1", TASK)
    call_agent(project, "t2", "Where do we publish?")
    assert start(project, "w1") == ""


def test_the_task_of_an_incognito_session_is_not_noted(project):
    project.post("/v1/incognito", {"session_id": "s1"})
    call_agent(project, "t1", TASK)
    project.post("/v1/incognito", {"session_id": "s1", "on": False})
    assert start(project, "w1") == ""


def test_a_spooled_report_has_the_time_of_its_event(project, container):
    spawn(project)
    stop(project, container, headers={"X-Reverie-Spooled": str(1_700_000_000 * 10**9)})
    said = project.get("/v1/sessions/s1.a1").get_json()["said"]
    assert {one["at"] for one in said} == {"2023-11-14T22:13:20.000Z"}


def test_a_report_is_a_session_of_its_parent(project, container):
    spawn(project)
    send(project, "PostToolUse", tool_name="Bash", tool_input={"command": "make publish"}, agent_id="a1")
    for _ in range(2):
        stop(project, container)
    parent = project.get("/v1/sessions/s1").get_json()
    assert parent["subagents"] == ["s1.a1"]
    child = project.get("/v1/sessions/s1.a1").get_json()
    assert child["session"]["parent"] == "s1"
    assert child["session"]["name"].startswith("general-purpose: Release the package")
    assert [said["content"] for said in child["said"]] == [
        REPORT,
        f"Task of a subagent (general-purpose): {TASK}",
    ]
    assert [action["target"] for action in child["did"]] == ["make publish"]
    assert "s1.a1" not in [one["id"] for one in project.get("/v1/sessions").get_json()["items"]]


def test_only_other_sessions_find_a_report(project, container, digested):
    spawn(project)
    stop(project, container)
    digested()
    question = "Why does the registry refuse a second upload of sprocket?"
    found = project.get(f"/v1/sessions/search?query={question}").get_json()["items"]
    assert [hit["session_id"] for hit in found] == ["s1.a1"]
    assert REPORT not in context(send(project, "UserPromptSubmit", prompt=question))


@pytest.mark.parametrize("silenced", ["before", "after"])
def test_an_incognito_session_keeps_no_report(project, container, digested, silenced):
    if silenced == "before":
        project.post("/v1/incognito", {"session_id": "s1"})
    spawn(project)
    stop(project, container)
    if silenced == "after":
        project.post("/v1/incognito", {"session_id": "s1"})
    digested()
    assert project.get("/v1/sessions/search?query=registry+refuses+sprocket").get_json()["items"] == []


def test_a_forgotten_turn_takes_its_reports_along(project, container):
    send(project, "UserPromptSubmit", prompt="Release it, please, with the new registry")
    spawn(project)
    stop(project, container)
    said = [{"role": "user", "content": "Release it, please, with the new registry"}]
    send(project, "Stop", said=said)
    flush_notes(container)
    answer = context(send(project, "UserPromptSubmit", prompt="Delete my last message", prompt_id="p2"))
    assert "deleted the user's last message" in answer
    flush_notes(container)
    said = project.get("/v1/sessions/s1.a1").get_json().get("said", [])
    assert REPORT not in [one["content"] for one in said]


def test_the_end_of_an_unknown_subagent_records_nothing(project, container):
    stop(project, container, role="")
    stop(project, container, report="  ")
    assert project.get("/v1/sessions/s1.a1").status_code == 404


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=8), part, max_size=3),
    max_leaves=5,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(fields=st.fixed_dictionaries(dict.fromkeys(("agent_id", "agent_type", "prompt_id", "tool_input"), JSON)))
@pytest.mark.parametrize("name", ["SubagentStart", "SubagentStop", "PreToolUse"])
def test_no_value_of_a_field_disturbs_the_host(shared, name, fields):
    event = {"hook_event_name": name, "session_id": "s", "tool_name": "Agent", **fields}
    event["last_assistant_message"] = fields["tool_input"]
    assert shared.post("/hooks/claude-code", event).status_code == 200


def test_a_task_of_a_megabyte_is_briefed(project):
    assert RULE in spawn(project, task=f"{TASK}. {'x' * (1 << 20)}")
