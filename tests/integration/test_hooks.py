"""What a host's hook gets: context for a relevant prompt, else an empty 200, whatever it sent."""

import pytest

from pipeline.identity import identify


def event(**fields):
    return {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "prompt": "Where does billing listen?", **fields}


def post(client, body, **rest):
    return client.post("/hooks/claude-code", body, **rest)


def is_silent(response):
    return response.status_code == 200 and response.get_data() == b""


def logged(client):
    return [e["message"] for e in client.get("/v1/errors").get_json()["items"] if e["component"] == "hooks.claude-code"]


def test_a_relevant_prompt_gets_context(client, digested):
    client.write("Billing listens on port 8123")
    digested()
    output = post(client, event(prompt="Which port does billing listen on?")).get_json()["hookSpecificOutput"]
    assert output["hookEventName"] == "UserPromptSubmit"
    assert "Billing listens on port 8123" in output["additionalContext"]
    assert logged(client) == []


@pytest.mark.parametrize("prompt", ["thanks, looks great!", "", "  \n", "hello there"])
def test_small_talk_gets_silence(client, digested, prompt):
    client.write("Billing listens on port 8123")
    digested()
    assert is_silent(post(client, event(prompt=prompt)))
    assert logged(client) == []


def test_nothing_written_yet_is_nothing_wrong(client):
    assert is_silent(post(client, event()))
    assert logged(client) == []


def test_an_archived_memory_is_not_told(client, digested):
    written = client.write("Billing listens on port 8123")
    digested()
    client.delete(f"/v1/memories/{written}")
    assert is_silent(post(client, event(prompt="Which port does billing listen on?")))


def test_the_folder_names_the_workspace(client, tmp_path, digested):
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / "src").mkdir()
    client.write("Billing listens on port 8123", workspace=identify(project).id)
    digested(identify(project).id)
    prompt = "Which port does billing listen on?"
    assert "8123" in post(client, event(prompt=prompt, cwd=str(project / "src"))).get_data(as_text=True)
    assert is_silent(post(client, event(prompt=prompt, cwd=str(tmp_path))))


def test_a_file_names_the_workspace_and_a_broken_one_disturbs_nobody(client, tmp_path, digested):
    client.write("Billing listens on port 8123", workspace="chosen")
    digested("chosen")
    asked = event(prompt="Which port does billing listen on?", cwd=str(tmp_path))
    (tmp_path / ".reverie.toml").write_text('workspace = "chosen"')
    assert "8123" in post(client, asked).get_data(as_text=True)
    (tmp_path / ".reverie.toml").write_text('workspace = "Not an id"')
    assert is_silent(post(client, asked))
    assert logged(client) == []


def test_the_environment_is_stronger_than_a_file(client, tmp_path, digested, monkeypatch):
    client.write("Billing listens on port 8123", workspace="loud")
    digested("loud")
    (tmp_path / ".reverie.toml").write_text('workspace = "quiet"')
    asked = event(prompt="Which port does billing listen on?", cwd=str(tmp_path))
    assert is_silent(post(client, asked))
    monkeypatch.setenv("REVERIE_WORKSPACE", "loud")
    assert "8123" in post(client, asked).get_data(as_text=True)


def test_clones_of_one_remote_share_their_memories(client, tmp_path, digested):
    for place, url in (("a", "git@github.com:o/r.git"), ("b", "https://token@github.com/o/r")):
        (tmp_path / place / ".git").mkdir(parents=True)
        (tmp_path / place / ".git" / "config").write_text(f'[remote "origin"]\nurl = {url}\n')
    workspace = identify(tmp_path / "a").id
    client.write("Billing listens on port 8123", workspace=workspace)
    digested(workspace)
    asked = event(prompt="Which port does billing listen on?", cwd=str(tmp_path / "b"))
    assert "8123" in post(client, asked).get_data(as_text=True)


def test_the_header_is_stronger_than_the_folder(client, tmp_path, digested):
    client.write("Billing listens on port 8123", workspace="chosen")
    digested("chosen")
    answer = post(client, event(prompt="Which port does billing listen on?", cwd=str(tmp_path)), workspace="chosen")
    assert "8123" in answer.get_data(as_text=True)


@pytest.mark.parametrize("name", ["Stop", "PreToolUse", "NoSuchEvent", "x" * 5000])
def test_an_event_that_is_not_handled_is_noted(client, name):
    assert is_silent(post(client, event(hook_event_name=name)))
    assert len(logged(client)) == 1
    assert len(logged(client)[0]) < 200


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"prompt": 1}', b'{"hook_event_name": null}', b"\xff"])
def test_a_broken_event_is_noted_and_answered_with_silence(client, body):
    assert is_silent(client.post("/hooks/claude-code", data=body))
    assert len(logged(client)) == 1


@pytest.mark.parametrize("cwd", ["\x00", "/" + "x" * 5000, "/proc/1/root/x", "relative", "~", "/dev/null/x"])
def test_a_strange_folder_disturbs_nobody(shared, cwd):
    assert post(shared, event(cwd=cwd)).status_code == 200


def test_a_prompt_of_any_length_is_answered(client):
    client.write("Billing listens on port 8123")
    assert post(client, event(prompt="billing " * 100_000)).status_code == 200
