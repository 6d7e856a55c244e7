"""Every event of a hook and call of a tool leaves a run: what was told, or why nothing was."""

import time
from dataclasses import asdict

import pytest

from pipeline.kernel.records.hooks import HookAnswer, LeftOut
from pipeline.kernel.store import turns
from pipeline.kernel.times import utc_text_at
from pipeline.prompt.history import describe_run

FACT = "The billing service uses port 8123"
PROMPT = "which port does billing use?"


def hook(client, event="UserPromptSubmit", **fields):
    body = {"hook_event_name": event, "session_id": "s1", "cwd": "", "prompt": PROMPT, **fields}
    return client.post("/hooks/claude-code", body)


def runs(client, query=""):
    return client.get(f"/v1/hook-runs{query}").get_json()["items"]


def test_hook_run_records_the_text_the_agent_read(client):
    memory_id = client.write(FACT)
    answer = hook(client).get_json()
    (run,) = runs(client)
    assert (run["event"], run["host"], run["workspace"], run["session_id"]) == (
        "UserPromptSubmit",
        "claude-code",
        "default",
        "s1",
    )
    assert (run["outcome"], run["memory_ids"], run["reason"]) == ("told", [memory_id], None)
    text = client.get(f"/v1/hook-runs/{run['id']}").get_json()["text"]
    assert text == answer["hookSpecificOutput"]["additionalContext"]
    assert run["chars"] == len(text)


def test_hook_run_records_the_reason_for_silence(client):
    hook(client)
    client.write(FACT)
    hook(client, prompt="thanks!")
    hook(client, "PostToolUse", tool_name="Read")
    hook(client, "Invented")
    client.post("/hooks/codex", {"hook_event_name": "UserPromptSubmit", "prompt": "thanks", "session_id": 7})
    found = [(one["event"], one["host"], one["outcome"], one["reason"]) for one in runs(client)]
    assert found == [
        ("UserPromptSubmit", "codex", "quiet", "nothing new is about it"),
        ("other", "claude-code", "quiet", "the event is not handled"),
        ("PostToolUse", "claude-code", "quiet", "noted"),
        ("UserPromptSubmit", "claude-code", "quiet", "nothing new is about it"),
        ("UserPromptSubmit", "claude-code", "quiet", "nothing was written here yet"),
    ]


def test_incognito_session_records_no_hook_run(client):
    client.write(FACT)
    client.post("/v1/incognito", {"session_id": "s1", "on": True})
    hook(client)
    assert runs(client) == []


def test_purge_erases_the_text_of_hook_runs(client, digested):
    memory_id = client.write(FACT)
    hook(client)
    client.delete(f"/v1/memories/{memory_id}?hard=true")
    (run,) = runs(client)
    whole = client.get(f"/v1/hook-runs/{run['id']}").get_json()
    assert (whole["text"], whole["reason"]) == ("", "its memories were purged")
    digested()


def test_a_call_of_a_tool_is_noted_without_secrets_and_counted(client):
    secret = "ghp_" + "a1B2" * 9
    body = {
        "event": "mcp:recall",
        "host": "codex",
        "session_id": "s9",
        "took_ms": 12.5,
        "outcome": "told",
        "text": f"the key is {secret}",
    }
    assert client.post("/v1/hook-runs", body).status_code == 202
    (run,) = runs(client, "?session_id=s9")
    assert secret not in client.get(f"/v1/hook-runs/{run['id']}").get_json()["text"]
    metrics = client.get("/metrics").get_data(as_text=True)
    assert 'reverie_hook_events_total{event="mcp:recall",host="codex",outcome="told"} 1.0' in metrics
    assert 'reverie_mcp_call_duration_seconds_sum{outcome="told",tool="recall"} 0.0125' in metrics


@pytest.mark.parametrize("run_id", ["999999", "x", "1" * 40])
def test_a_run_that_is_not_there(client, run_id):
    assert client.get(f"/v1/hook-runs/{run_id}").status_code == 404


@pytest.mark.parametrize(
    ("field", "value"), [("event", "two words"), ("outcome", "maybe"), ("took_ms", -1), ("memory_ids", ["x"] * 201)]
)
def test_a_call_that_cannot_be_noted_is_named(client, field, value):
    body = {"event": "mcp:recall", "host": "x", "took_ms": 1, "outcome": "told", field: value}
    answer = client.post("/v1/hook-runs", body)
    assert answer.status_code == 422
    assert answer.get_json()["errors"][0]["loc"] == field


def test_runs_are_listed_in_pages(client):
    client.write(FACT)
    for number in range(5):
        hook(client, session_id=f"s{number}")
    first = client.get("/v1/hook-runs?limit=3").get_json()
    rest = client.get(f"/v1/hook-runs?limit=3&cursor={first['next_cursor']}").get_json()
    assert [one["session_id"] for one in first["items"] + rest["items"]] == ["s4", "s3", "s2", "s1", "s0"]
    assert rest["next_cursor"] is None


def say(client, text, at=None, session="s1"):
    message = {"role": "user", "content": text} | ({} if at is None else {"at": at})
    body = {"session_id": session, "messages": [message, {"role": "assistant", "content": "Done."}]}
    assert client.post("/v1/turns", body).status_code == 202


def prompts(client):
    """Return the prompt of each run, the first first."""
    return [client.get(f"/v1/hook-runs/{run['id']}").get_json()["prompt"] for run in reversed(runs(client))]


def test_a_run_is_read_with_the_stored_prompt(client):
    client.write(FACT)
    hook(client)
    assert prompts(client) == [None]
    say(client, PROMPT)
    say(client, "and something else", session="s2")
    assert prompts(client) == [PROMPT]


def test_each_run_has_its_own_prompt(client, container):
    client.write(FACT)
    now = time.time()
    said = ["which port does billing use?", "thanks!", "deploy it then"]
    for number, text in enumerate(said):
        hook(client, prompt=text)
        hook(client, "PostToolUse", tool_name="Read")
        # The second prompt is not stored, as after "don't save this".
        if number != 1:
            say(client, text, utc_text_at(now + 60 * number - 1))
    container.feedback.flush()
    with container.operations.tables.write() as db:
        times = [(now + 60 * (seq // 2), seq + 1) for seq in range(6)]
        db.executemany("UPDATE hook_run SET at = ? WHERE seq = ?", times)
    assert prompts(client) == [said[0], None, None, None, said[2], None]


def test_a_purged_or_silent_prompt_is_not_shown(client, digested):
    client.write(FACT)
    hook(client, session_id="s1")
    say(client, "our port is 9911, remember that")
    (prompt,) = prompts(client)
    assert prompt is not None
    with_incognito = {"session_id": "s1", "on": True}
    client.post("/v1/incognito", with_incognito)
    hook(client, session_id="s1", prompt="a silent prompt")
    say(client, "a silent prompt")
    assert prompts(client) == [prompt]


def test_the_prompt_goes_with_the_turn(client, container):
    client.write(FACT)
    hook(client)
    say(client, PROMPT)
    assert prompts(client) == [PROMPT]
    with container.databases.get("default").write() as db:
        turns.forget(db, [turn.seq for turn in turns.page(db, "s1", 10, None)])
    assert prompts(client) == [None]
    with container.operations.tables.write() as db:
        assert not any(PROMPT in str(row) for row in db.execute("SELECT * FROM hook_run"))


def test_a_run_records_the_lines_that_were_left_out_with_the_reason(container, client):
    line = LeftOut("12", "memory", "The billing service uses port 8123", 0.4, "below the bar")
    answer = HookAnswer(reason="nothing new is about it", left_out=[line])
    run = describe_run("UserPromptSubmit", "codex", ("default", "s1"), 0.0, answer)
    container.agents.hook_runs.record(run)
    (listed,) = runs(client)
    assert client.get(f"/v1/hook-runs/{listed['id']}").get_json()["left_out"] == [asdict(line)]
    assert container.agents.hook_runs.get(listed["id"]).left_out == [asdict(line)]
