import pytest

from tests.fakes.command_line import run, run_json, serve_app


@pytest.fixture
def did(client, container):
    """Do some things in two sessions, as a host tells of them."""

    def use(session, command, *, ok=True):
        event = {
            "hook_event_name": "PostToolUse" if ok else "PostToolUseFailure",
            "session_id": session,
            "tool_name": "Bash",
            "tool_input": {"command": command},
        }
        client.post("/hooks/claude-code", event)

    client.write("Something")
    use("s1", "make test", ok=False)
    use("s2", "make build")
    use("s1", "export TOKEN=ghp_" + "a1B2" * 9 + " && make deploy")
    container.feedback.submit(lambda: None).result(timeout=20)


def list_deeds(items):
    return [(item["session_id"], item["type"], item["target"], item["ok"]) for item in items]


@pytest.mark.usefixtures("did")
def test_journal_lists_agent_actions_newest_first(client):
    items = client.get("/v1/journal").get_json()["items"]
    assert list_deeds(items)[1:] == [("s2", "command", "make build", True), ("s1", "test", "make test", False)]
    assert items[0]["type"] == "deploy"
    assert "ghp_" not in items[0]["target"]
    assert set(items[0]) == {"id", "at", "session_id", "agent_id", "tool", "type", "target", "ok"}


@pytest.mark.usefixtures("did")
def test_a_session_and_a_page_can_be_named(client):
    first = client.get("/v1/journal?session_id=s1&limit=1").get_json()
    assert list_deeds(first["items"])[0][:2] == ("s1", "deploy")
    last = client.get(f"/v1/journal?session_id=s1&limit=1&cursor={first['next_cursor']}").get_json()
    assert (list_deeds(last["items"]), last["next_cursor"]) == ([("s1", "test", "make test", False)], None)
    assert client.get("/v1/journal?session_id=unknown").get_json()["items"] == []
    assert client.get("/v1/journal?cursor=x").status_code == 422
    assert client.get("/v1/journal", workspace="unknown").status_code == 404


@pytest.mark.usefixtures("did")
def test_the_command_shows_the_journal(container, monkeypatch):
    with serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        lines = run("-w", "default", "logs", "journal", "--session", "s1").stdout.splitlines()
        assert [line.split()[-3:] for line in lines[1:]] == [["&&", "make", "deploy"], ["make", "test", "(failed)"]]
        assert len(run_json("-w", "default", "logs", "journal", "-n", "1")["items"]) == 1
