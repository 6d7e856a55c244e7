"""The report says for each shown rule which acts kept or broke it."""

import json
import time

from hypothesis import HealthCheck, given, settings, strategies as st

from tests.fakes.dashboard import sign_in
from tests.fakes.in_process import flush_notes
from tests.fakes.people import PersonClient, add_person

TEAM = "team"
RULE = "Use pnpm in this project, never npm"


def send(client, name, **fields):
    return client.post("/hooks/claude-code", {"hook_event_name": name, "session_id": "s1", **fields})


def run(client, container, command, number=1, **fields):
    call = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": f"toolu_{number}"}
    assert send(client, "PostToolUse", **call, **fields).status_code == 200
    flush_notes(container)


def show_rule(client, digested, text=RULE, session="s1"):
    written = client.write(text, kind="lesson")
    digested()
    answer = send(client, "SessionStart", source="startup", session_id=session).get_json()
    assert text in answer["hookSpecificOutput"]["additionalContext"]
    return written


def report(client):
    return client.get("/v1/lessons/report").get_json()["items"]


def test_the_report_names_the_acts_that_kept_and_broke_a_rule(client, container, digested, tmp_path):
    rule = show_rule(client, digested)
    transcript = tmp_path / "s1.jsonl"
    transcript.write_text("{}\n" + json.dumps({"content": [{"id": "toolu_2", "input": {}}]}) + "\n")
    run(client, container, "pnpm install")
    run(client, container, "npm install left-pad", 2, transcript_path=str(transcript))
    run(client, container, "git status", 3)
    [found] = report(client)
    assert (found["id"], found["verdict"], found["kept"], found["broken"]) == (rule, "broken", 1, 1)
    [use] = found["uses"]
    assert [(act["target"], act["is_kept"], act["line"]) for act in use["acts"]] == [
        ("pnpm install", True, None),
        ("npm install left-pad", False, 2),
    ]
    assert use["acts"][1]["transcript"] == "s1.jsonl"


def test_an_act_counts_for_the_agent_that_was_shown_the_rule(client, container, digested):
    show_rule(client, digested)
    run(client, container, "npm install", agent_id="helper")
    run(client, container, "npm install", session_id="another")
    [found] = report(client)
    assert (found["verdict"], found["uses"][0]["acts"]) == ("not concerned", [])


def test_a_failed_command_proves_nothing(client, container, digested):
    show_rule(client, digested)
    call = {"tool_name": "Bash", "tool_input": {"command": "npm install"}, "error": "Exit code 1\nnpm: not found"}
    send(client, "PostToolUseFailure", **call)
    flush_notes(container)
    assert report(client)[0]["broken"] == 0


def test_a_vague_rule_is_not_decidable(client, container, digested):
    show_rule(client, digested, "Keep it simple")
    run(client, container, "make test")
    assert report(client)[0]["verdict"] == "not decidable"


def test_a_rule_that_acts_broke_twice_is_proposed_as_guard(client, container, digested):
    show_rule(client, digested, "Never run npm install in this project")
    run(client, container, "npm install a")
    run(client, container, "npm install b", 2)
    assert report(client)[0]["proposal"] == "guard"


def test_a_rule_that_never_concerns_an_act_is_proposed_for_archiving(client, container, digested):
    show_rule(client, digested)
    for number in range(10):
        send(client, "SessionStart", source="startup", session_id=f"later-{number}")
        flush_notes(container)
        run(client, container, "git status", session_id=f"later-{number}")
    assert report(client)[0]["proposal"] == "archive"


def test_an_order_of_acts_is_kept_across_calls(client, container, digested):
    show_rule(client, digested, "Always run make lint before you commit")
    run(client, container, "make lint")
    run(client, container, "git commit -m 'One'", 2)
    send(client, "PostToolUse", tool_name="Edit", tool_input={"file_path": "a.py", "new_string": "x"})
    run(client, container, "git commit -am 'Two'", 3)
    assert [act["is_kept"] for act in report(client)[0]["uses"][0]["acts"]] == [True, False]


def test_an_incognito_session_is_not_judged(client, container, digested):
    show_rule(client, digested)
    client.post("/v1/incognito", {"session_id": "s1"})
    run(client, container, "npm install")
    client.post("/v1/incognito", {"session_id": "s1", "on": False})
    assert report(client)[0]["uses"][0]["acts"] == []


def test_an_incognito_session_is_not_reported(client, container, digested):
    show_rule(client, digested)
    run(client, container, "npm install")
    send(client, "SessionStart", source="startup", session_id="s2")
    flush_notes(container)
    client.post("/v1/incognito", {"session_id": "s1"})
    [found] = report(client)
    assert (found["shown"], [use["session_id"] for use in found["uses"]], found["broken"]) == (1, ["s2"], 0)


def test_a_person_sees_the_acts_of_their_own_sessions(app, client, container, digested):
    client.write(RULE, kind="lesson", workspace=TEAM)
    digested(TEAM)
    tokens = {name: add_person(container, name, **{TEAM: "writer"}) for name in ("Ada", "Bob")}
    ada, bob = (PersonClient(app, container, token, TEAM) for token in tokens.values())
    for _ in range(2):
        send(ada, "SessionStart", source="startup", session_id="of-ada")
    flush_notes(container)
    run(ada, container, "npm install left-pad", session_id="of-ada")
    [found] = report(ada)
    assert (found["shown"], found["broken"]) == (1, 1)
    assert report(bob) == []
    assert client.get("/v1/lessons/report", workspace=TEAM).get_json()["items"] == []
    send(bob, "SessionStart", source="startup", session_id="of-bob")
    flush_notes(container)
    [found] = report(bob)
    assert (found["shown"], len(found["uses"]), found["broken"]) == (1, 1, 0)


def test_a_spooled_act_is_compared_with_what_came_before_it(client, container, digested):
    show_rule(client, digested, "Always run make lint before you commit")
    flush_notes(container)
    committed_at = time.time_ns()
    run(client, container, "make lint", 2)
    send(client, "SessionStart", source="compact")
    flush_notes(container)
    headers = {"X-Reverie-Spooled": str(committed_at)}
    call = {"tool_name": "Bash", "tool_input": {"command": "git commit -m 'One'"}, "tool_use_id": "toolu_1"}
    client.post("/hooks/claude-code", {"hook_event_name": "PostToolUse", "session_id": "s1", **call}, headers=headers)
    flush_notes(container)
    [found] = report(client)
    acts = {use["at"]: [act["is_kept"] for act in use["acts"]] for use in found["uses"]}
    assert [acts[at] for at in sorted(acts)] == [[False], []]


def test_the_page_lists_rules_with_their_acts_and_proposals(client, container, digested):
    browser = sign_in(client)
    client.write("Billing listens on port 8123")
    assert "No rule was shown yet" in browser.page("/w/default/lessons/report")
    show_rule(client, digested, "Never run npm install in <b>this</b> project")
    run(client, container, "npm install a")
    run(client, container, "npm install b", 2)
    page = browser.page("/w/default/lessons/report")
    assert "npm install b" in page
    assert "Let it block them" in page
    assert "<b>this</b>" not in page


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=30) | st.binary(max_size=8).map(repr),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=8), part, max_size=3),
    max_leaves=5,
)
INPUT = st.dictionaries(st.sampled_from(["command", "file_path", "content", "edits", "new_string"]), JSON, max_size=5)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(tool=st.sampled_from(["Bash", "Edit", "Write", "MultiEdit", "Read", "", "x"]), arguments=INPUT)
def test_no_tool_input_disturbs_the_host(shared, tool, arguments):
    event = {"hook_event_name": "PostToolUse", "session_id": "s", "tool_name": tool, "tool_input": arguments}
    assert shared.post("/hooks/claude-code", event).status_code == 200
