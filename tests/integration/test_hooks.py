"""What a host's hook gets: context for a relevant prompt, else an empty 200, whatever it sent."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from pipeline.features.workspaces.identify import identify
from pipeline.features.workspaces.usecases import agree_to_claim, list_claims
from pipeline.kernel.errors import StoreFull
from pipeline.kernel.store import agent_sessions
from pipeline.prompt.agent_events import AgentSessionService
from tests.fakes.in_process import flush_notes
from web.hooks import claude_code


def event(**fields):
    return {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "prompt": "Where does billing listen?", **fields}


def post(client, body, **rest):
    return client.post("/hooks/claude-code", body, **rest)


def is_silent(response):
    return response.status_code == 200 and response.get_data() == b""


def list_logged(client):
    return [e["message"] for e in client.get("/v1/errors").get_json()["items"] if e["component"] == "hooks.claude-code"]


def test_a_relevant_prompt_gets_context(client, digested):
    client.write("Billing listens on port 8123")
    digested()
    output = post(client, event(prompt="Which port does billing listen on?")).get_json()["hookSpecificOutput"]
    assert output["hookEventName"] == "UserPromptSubmit"
    assert "Billing listens on port 8123" in output["additionalContext"]
    assert list_logged(client) == []


@pytest.mark.parametrize("prompt", ["thanks, looks great!", "", "  \n", "hello there"])
def test_small_talk_gets_silence(client, digested, prompt):
    client.write("Billing listens on port 8123")
    digested()
    assert is_silent(post(client, event(prompt=prompt)))
    assert list_logged(client) == []


def test_nothing_written_yet_is_nothing_wrong(client):
    assert is_silent(post(client, event()))
    assert list_logged(client) == []


def test_archived_memory_is_not_injected(client, digested):
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


def test_workspace_of_a_folder_is_found_in_the_open_stores(client, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(
        "pipeline.features.workspaces.usecases.is_in_use", lambda _settings, name: opened.append(name) or False
    )
    assert is_silent(post(client, event(cwd=str(tmp_path))))
    assert opened == []


def test_project_file_selects_the_workspace_and_an_invalid_file_is_ignored(client, container, tmp_path, digested):
    client.write("Billing listens on port 8123", workspace="chosen")
    digested("chosen")
    asked = event(prompt="Which port does billing listen on?", cwd=str(tmp_path))
    (tmp_path / ".reverie.toml").write_text('workspace = "chosen"')
    assert is_silent(post(client, asked))
    [waiting] = list_claims(container.settings)
    assert (waiting.file, waiting.workspace, waiting.agreed) == (str(tmp_path / ".reverie.toml"), "chosen", False)
    agree_to_claim(container.settings, tmp_path / ".reverie.toml", "chosen")
    assert "8123" in post(client, asked).get_data(as_text=True)
    (tmp_path / ".reverie.toml").write_text('workspace = "Not an id"')
    for _ in range(3):
        assert is_silent(post(client, asked))
    assert list_logged(client) == []
    [problem] = [one["message"] for one in client.get("/v1/errors").get_json()["items"]]
    assert problem.startswith(f"{tmp_path / '.reverie.toml'} is not used: workspace must match")


def test_the_environment_of_the_server_decides_nothing(client, tmp_path, digested, monkeypatch):
    client.write("Billing listens on port 8123", workspace="loud")
    digested("loud")
    (tmp_path / ".reverie.toml").write_text('workspace = "quiet"')
    asked = event(prompt="Which port does billing listen on?", cwd=str(tmp_path))
    assert is_silent(post(client, asked))
    monkeypatch.setenv("REVERIE_WORKSPACE", "loud")
    assert is_silent(post(client, asked))


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


@pytest.mark.parametrize("name", ["Notification", "NoSuchEvent", "x" * 5000])
def test_an_event_that_is_not_handled_is_noted(client, name):
    assert is_silent(post(client, event(hook_event_name=name)))
    assert len(list_logged(client)) == 1
    assert len(list_logged(client)[0]) < 200


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"prompt": 1}', b'{"hook_event_name": null}', b"\xff"])
def test_a_broken_event_is_noted_and_answered_with_silence(client, body):
    assert is_silent(client.post("/hooks/claude-code", data=body))
    assert len(list_logged(client)) == 1


@pytest.mark.parametrize("cwd", ["\x00", "/" + "x" * 5000, "/proc/1/root/x", "relative", "~", "/dev/null/x"])
def test_hook_with_an_unusual_folder_is_answered(shared, cwd):
    assert post(shared, event(cwd=cwd)).status_code == 200


def test_a_prompt_of_any_length_is_answered(client):
    client.write("Billing listens on port 8123")
    assert post(client, event(prompt="billing " * 100_000)).status_code == 200


# What happens in a session


PORT = "Which port does billing listen on?"


def context(response):
    assert response.status_code == 200
    body = response.get_json(silent=True)
    return None if body is None else body["hookSpecificOutput"]["additionalContext"]


def tool(client, name, given, event_name="PostToolUse", **fields):
    sent = event(hook_event_name=event_name, tool_name=name, tool_input=given, tool_use_id="t1", **fields)
    return post(client, sent)


def journal(container, workspace="default", session="s1"):
    flush_notes(container)
    with container.databases.get(workspace).read() as db:
        return [
            (one.type, one.target, one.ok, one.agent_id) for one in agent_sessions.list_actions(db, session, "", 100)
        ]


def ambient(client, workspace=None):
    items = client.get("/v1/memories", workspace=workspace).get_json()["items"]
    return [item for item in items if item["source"] == "ambient"]


def test_memory_is_injected_once_per_session_unless_it_changed(client, container, digested):
    written = client.write("Billing listens on port 8123")
    digested()
    assert "8123" in context(post(client, event(prompt=PORT)))
    assert is_silent(post(client, event(prompt=PORT)))
    assert "8123" in context(post(client, event(prompt=PORT, session_id="s2")))
    assert "8123" in context(post(client, event(prompt=PORT, agent_id="helper")))
    client.patch(f"/v1/memories/{written}", {"content": "Billing listens on port 9321"})
    digested()
    assert "9321" in context(post(client, event(prompt=PORT)))
    assert is_silent(post(client, event(prompt=PORT)))


def test_prompt_without_a_session_id_injects_the_memory_each_time(client, digested):
    client.write("Billing listens on port 8123")
    digested()
    for _ in range(2):
        assert "8123" in context(post(client, event(prompt=PORT, session_id="")))


@pytest.mark.parametrize("source", ["compact", "resume", "clear"])
def test_memory_is_injected_again_after_the_context_is_lost(client, digested, source):
    client.write("Billing listens on port 8123")
    digested()
    assert context(post(client, event(prompt=PORT)))
    assert is_silent(post(client, event(prompt=PORT)))
    post(client, event(hook_event_name="SessionStart", source=source))
    assert "8123" in context(post(client, event(prompt=PORT)))


def test_memory_listed_at_session_start_is_injected_again_by_a_prompt(client, digested):
    client.write("Billing listens on port 8123", kind="decision")
    digested()
    assert "8123" in context(post(client, event(hook_event_name="SessionStart", source="startup")))
    assert "8123" in context(post(client, event(prompt=PORT)))
    assert is_silent(post(client, event(prompt=PORT)))


def test_session_start_after_compaction_shows_recent_actions(client, container):
    client.write("Billing moves to port 9000", kind="decision", session_id="s1")
    tool(client, "Edit", {"file_path": "/p/billing.py"}, cwd="/p")
    tool(client, "Bash", {"command": "pytest -q"}, "PostToolUseFailure")
    told = context(post(client, event(hook_event_name="SessionStart", source="compact")))
    assert told.splitlines()[:3] == [
        "Where this session left off, as its journal noted:",
        "- edit “billing.py”",
        "- test “pytest -q” (failed)",
    ]
    assert "Billing moves to port 9000" in told
    assert "left off" not in (context(post(client, event(hook_event_name="SessionStart", source="startup"))) or "")


def test_a_deed_is_one_row_in_the_journal(client, container):
    client.write("Something")
    tool(client, "Read", {"file_path": "a.py"})
    tool(client, "Bash", {"command": "git status"})
    tool(client, "Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"}, agent_id="helper")
    tool(client, "Bash", {"command": "make build"}, "PostToolUseFailure", error="exit 2")
    tool(client, "Bash", {"command": "make lint"}, tool_response={"is_error": True})
    tool(client, "Bash", {"command": "make all"}, tool_response={"stdout": "", "interrupted": True})
    tool(client, "Bash", {"command": "make fine"}, tool_response={"stdout": "ok", "interrupted": False})
    tool(client, "Bash", {"command": "make odd"}, tool_response="text")
    assert journal(container) == [
        ("edit", "a.py", True, "helper"),
        ("command", "make build", False, None),
        ("command", "make lint", False, None),
        ("command", "make all", False, None),
        ("command", "make fine", True, None),
        ("command", "make odd", True, None),
    ]
    assert list_logged(client) == []


def test_the_first_deed_makes_a_projects_workspace_and_nothing_less(client, container, tmp_path):
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    own = identify(project).id
    where = {"cwd": str(project)}
    post(client, event(**where))
    post(client, event(hook_event_name="SessionStart", source="startup", **where))
    tool(client, "Edit", {"file_path": "x"}, "PreToolUse", **where)
    tool(client, "Bash", {"command": "ls"}, **where)
    post(client, event(hook_event_name="Stop", **where))
    post(client, event(hook_event_name="SessionEnd", **where))
    flush_notes(container)
    assert container.settings.paths.workspace_ids() == []
    tool(client, "Edit", {"file_path": str(project / "x.py")}, **where)
    assert journal(container, own) == [("edit", "x.py", True, None)]
    assert container.settings.paths.workspace_ids() == [own]


def test_folder_that_is_no_project_creates_no_workspace(client, container, tmp_path):
    tool(client, "Edit", {"file_path": "x.py"}, cwd=str(tmp_path))
    flush_notes(container)
    assert container.settings.paths.workspace_ids() == ["default"]


CRITICAL = {"kind": "lesson", "details": {"severity": "critical"}}
MIGRATE = {"command": "make migrate"}


def guard(response):
    """Return what is decided before a tool and why, None where nothing is said."""
    body = response.get_json(silent=True)
    if body is None:
        return None
    output = body["hookSpecificOutput"]
    assert set(output) == {"hookEventName", "permissionDecision", "permissionDecisionReason"}
    return output["permissionDecision"], output["permissionDecisionReason"]


def lesson_record(client, lesson):
    [record] = [item for item in client.get("/v1/lessons").get_json()["items"] if item["id"] == lesson]
    return record["shown"], record["followed"], record["ignored"]


def test_critical_lesson_asks_the_user_before_the_command_it_names(client, container):
    lesson = client.write("Run make migrate before make test", **CRITICAL)
    client.write("Wash your hands before make test", kind="lesson")
    client.write("make test deletes the database", source="import", **CRITICAL)
    decision, reason = guard(tool(client, "Bash", {"command": "make test"}, "PreToolUse"))
    assert decision == "ask"
    assert "Run make migrate before make test" in reason
    assert "hands" not in reason
    assert "deletes" not in reason
    assert "surface" in reason
    assert is_silent(tool(client, "Read", {"file_path": "Makefile"}, "PreToolUse"))
    tool(client, "Bash", MIGRATE)
    tool(client, "Bash", {"command": "make test"})
    post(client, event(hook_event_name="Stop"))
    flush_notes(container)
    assert lesson_record(client, lesson) == (1, 1, 0)


def test_command_allowed_by_a_person_is_not_guarded_again_in_its_session(client, container):
    client.write("Run make migrate before make test", **CRITICAL)
    assert guard(tool(client, "Bash", MIGRATE, "PreToolUse"))
    # Refused: no tool was used, and nothing was noted.
    assert guard(tool(client, "Bash", MIGRATE, "PreToolUse"))
    tool(client, "Bash", MIGRATE)
    flush_notes(container)
    assert is_silent(tool(client, "Bash", MIGRATE, "PreToolUse"))
    assert guard(tool(client, "Bash", {"command": "make test"}, "PreToolUse"))
    assert guard(tool(client, "Bash", MIGRATE, "PreToolUse", session_id="s2"))
    # A lesson that was learned since is news.
    client.write("make migrate locks the table of orders", **CRITICAL)
    _, reason = guard(tool(client, "Bash", MIGRATE, "PreToolUse"))
    assert "locks the table" in reason
    assert "before make test" not in reason


@pytest.mark.parametrize(
    ("route", "name", "tool"), [("codex", "PreToolUse", "Bash"), ("gemini", "BeforeTool", "run_shell_command")]
)
def test_a_host_that_cannot_ask_refuses_once(client, container, route, name, tool):
    client.write("Run make migrate before make test", **CRITICAL)

    def use(command, **fields):
        given = event(hook_event_name=name, tool_name=tool, tool_input={"command": command}, **fields)
        answer = client.post(f"/hooks/{route}", given).get_json(silent=True)
        if answer is None:
            return None
        told = answer.get("hookSpecificOutput", answer)
        assert told.get("permissionDecision", told.get("decision")) == "deny"
        return told.get("permissionDecisionReason", told.get("reason"))

    assert "do it again" in use("make test")
    assert use("make test") is None
    assert use("make migrate")
    assert use("make test", session_id="s2")
    client.write("make test takes an hour", **CRITICAL)
    assert "an hour" in use("make test")


@pytest.mark.parametrize(("setting", "decided"), [("off", None), ("ask", "ask"), ("deny", "deny")])
def test_lesson_guard_setting_chooses_ask_deny_or_off(client, container, setting, decided):
    client.write("Never run make migrate here", **CRITICAL)
    container.settings.paths.workspace("default").config.write_text(f'lesson_guard = "{setting}"\nact_recall = "off"\n')
    found = guard(tool(client, "Bash", MIGRATE, "PreToolUse"))
    assert (found and found[0]) == decided


def test_session_start_lesson_is_counted_and_shown_again_by_a_prompt(client, container, digested):
    lesson = client.write("Run make migrate before make test", **CRITICAL)
    digested()
    brief = context(post(client, event(hook_event_name="SessionStart", source="startup")))
    assert "surface" in brief
    prompt = event(prompt="When do I have to run make migrate?")
    assert "make migrate" in context(post(client, prompt))
    assert is_silent(post(client, prompt))
    assert guard(tool(client, "Bash", MIGRATE, "PreToolUse"))
    flush_notes(container)
    # Before the tool it is the impression that the prompt made.
    assert lesson_record(client, lesson)[0] == 2


@pytest.mark.parametrize(
    ("stored", "told_again"),
    [
        ({"content": "The tests failed for want of an index", "session_id": "s1"}, False),
        ({"content": "The tests failed for want of an index"}, False),
        ({"content": "Mended the pool of connections in pool.py", "session_id": "another"}, False),
        ({"content": "The moon is full", "session_id": "another"}, True),
    ],
)
def test_turn_covered_by_an_agents_own_memory_is_not_captured(client, container, stored, told_again):
    client.write("Something")
    post(client, event())
    tool(client, "Bash", {"command": "pytest -q"}, "PostToolUseFailure")
    tool(client, "Edit", {"file_path": "pool.py"})
    tool(client, "Bash", {"command": "pytest -q"})
    client.write(**stored, source="agent")
    post(client, event(hook_event_name="Stop"))
    flush_notes(container)
    assert bool(ambient(client)) == told_again


def guard_command(client, command, **fields):
    return guard(tool(client, "Bash", {"command": command}, "PreToolUse", **fields))


def test_only_guarded_commands_that_succeeded_are_not_asked_about_again(client, container):
    client.write("Something")
    tool(client, "Bash", {"command": "make test"})
    lesson = client.write("Run make migrate before make test", **CRITICAL)
    flush_notes(container)
    for _ in range(2):
        assert guard_command(client, "make test")[0] == "ask"
        tool(client, "Bash", {"command": "make test"}, "PostToolUseFailure")
    flush_notes(container)
    [record] = client.get("/v1/lessons").get_json()["items"]
    # Asked for twice and not answered, it was shown once.
    assert (record["id"], record["shown"]) == (lesson, 1)
    tool(client, "Bash", {"command": "make test"})
    assert is_silent(tool(client, "Bash", {"command": "make test"}, "PreToolUse"))


def test_required_steps_are_asked_about_and_forbidden_commands_denied(client, container):
    client.write("Run make migrate before make test", **CRITICAL)
    client.write("Never run make deploy here. " + "x" * 300, **CRITICAL)
    container.settings.paths.workspace("default").config.write_text('lesson_guard = "deny"\nhook_max_chars = 200\n')
    for _ in range(2):
        assert guard_command(client, "make deploy")[0] == "deny"
        tool(client, "Bash", {"command": "make deploy"})
    assert guard_command(client, "make migrate")[0] == "ask"
    tool(client, "Bash", {"command": "make migrate"})
    assert is_silent(tool(client, "Bash", {"command": "make migrate"}, "PreToolUse"))


def test_prompt_injects_lessons_about_the_names_it_contains(client):
    client.write("Run `alembic upgrade head` from the api folder", kind="lesson")
    client.write("seed.py empties the table first", kind="lesson")
    client.write("Do not git push on a Friday", kind="lesson")
    told = context(post(client, event(prompt="now `alembic upgrade head`, please")))
    assert "api folder" in told
    assert "seed.py" not in told
    assert "Friday" not in told
    assert "empties the table" in context(post(client, event(prompt="rename scripts/seed.py")))
    assert "Friday" in context(post(client, event(prompt="then git push it")))
    assert is_silent(post(client, event(prompt="and again git push it")))
    assert is_silent(post(client, event(prompt="ok, go on")))


@pytest.mark.parametrize(
    ("rule", "first", "harmless", "breaking"),
    [
        ("Never git push to main", "then git push it", "git push the branch again", "ok now git push to main"),
        (
            "Do not use print for the output of the worker",
            "how does the worker write its output, with print?",
            "what does the worker output?",
            "add a print for the output of the worker",
        ),
        (
            "Benutze nie git rebase auf main",
            "git rebase bitte",
            "was macht git rebase?",
            "mach einen git rebase auf main",
        ),
    ],
)
def test_shown_rule_is_shown_again_before_it_is_broken(client, rule, first, harmless, breaking):
    client.write(rule, kind="lesson")
    assert rule in context(post(client, event(prompt=first)))
    assert is_silent(post(client, event(prompt=harmless)))
    assert rule in context(post(client, event(prompt=breaking)))


def test_prompt_injects_lessons_about_recent_actions_of_the_session(client, container, digested):
    client.write("seed.py empties the table first", kind="lesson")
    client.write("Billing listens on port 8123")
    digested()
    tool(client, "Edit", {"file_path": "/p/seed.py"}, cwd="/p")
    flush_notes(container)
    assert is_silent(post(client, event(prompt="thanks, looks great!")))
    assert "empties" not in context(post(client, event(prompt=PORT, session_id="s2")))
    assert "empties" in context(post(client, event(prompt=PORT)))


def test_a_turn_with_a_result_leaves_one_ambient_memory(client, container):
    client.write("Something")
    post(client, event())
    tool(client, "Bash", {"command": "pytest -q"}, "PostToolUseFailure")
    tool(client, "Edit", {"file_path": "pool.py"})
    tool(client, "Bash", {"command": "pytest -q"})
    for _ in range(2):
        post(client, event(hook_event_name="Stop", stop_hook_active=False, last_assistant_message="Done"))
    flush_notes(container)
    [kept] = ambient(client)
    assert kept["content"] == "Fixed: `pytest -q` failed and passes now. Edited pool.py."
    assert (kept["session_id"], kept["tags"], kept["trust"], kept["kind"]) == (
        "s1",
        ["ambient"],
        "evidence",
        "activity",
    )
    assert kept["merge_count"] == 0
    post(client, event())
    post(client, event(hook_event_name="Stop"))
    flush_notes(container)
    assert len(ambient(client)) == 1


def test_commit_explained_by_the_agents_memory_is_not_captured_again(client, container):
    client.write("Something")
    post(client, event())
    flush_notes(container)
    tool(client, "Bash", {"command": "git commit -m 'Fix the pool race'"})
    client.write("The race in the pool came from a shared cursor", source="agent", session_id="s1")
    post(client, event(hook_event_name="Stop"))
    flush_notes(container)
    assert ambient(client) == []


def test_a_subagents_end_is_the_end_of_no_turn(client, container):
    client.write("Something")
    tool(client, "Bash", {"command": "git commit -m 'Fix the pool race'"}, agent_id="helper", agent_type="Explore")
    assert is_silent(post(client, event(hook_event_name="SubagentStop", agent_id="helper")))
    assert is_silent(post(client, event(hook_event_name="Stop", agent_id="helper")))
    flush_notes(container)
    assert ambient(client) == []
    assert list_logged(client) == []


def test_a_turn_without_a_result_leaves_nothing(client, container):
    client.write("Something")
    tool(client, "Edit", {"file_path": "pool.py"})
    post(client, event(hook_event_name="Stop"))
    flush_notes(container)
    assert ambient(client) == []


def test_secrets_reach_no_file(client, container):
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    client.write("Something")
    tool(client, "Bash", {"command": f"GITHUB_TOKEN={secret} make release"})
    tool(client, "Bash", {"command": f"git commit -m 'Use {secret} for the release'"})
    post(client, event(hook_event_name="Stop"))
    assert len(journal(container)) == 2
    assert ambient(client)
    container.close()
    assert [
        file for file in container.settings.home.rglob("*") if file.is_file() and secret.encode() in file.read_bytes()
    ] == []


SAID = "qwyjibo"
EVERY_EVENT = [
    {"hook_event_name": "SessionStart", "source": "startup"},
    {"hook_event_name": "UserPromptSubmit", "prompt": f"Which port does billing listen on, {SAID}?"},
    {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": f"make {SAID}"}},
    {"hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_input": {"file_path": f"/p/{SAID}.py"}},
    {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": {"command": f"git commit -m '{SAID} works'"}},
    {"hook_event_name": "PostToolUseFailure", "tool_name": "Bash", "tool_input": {"command": f"make {SAID}"}},
    {"hook_event_name": "PreCompact", "trigger": "auto", "custom_instructions": SAID},
    {"hook_event_name": "Stop", "last_assistant_message": SAID},
    {"hook_event_name": "SubagentStop", "agent_id": SAID},
    {"hook_event_name": "SessionStart", "source": "compact"},
    {"hook_event_name": "SessionEnd", "reason": SAID},
]


def traces(container):
    container.close()
    files = [file for file in container.settings.home.rglob("*") if file.is_file()]
    return [file.name for file in files if SAID.encode() in file.read_bytes() or SAID in file.name]


def test_incognito_session_stores_and_injects_nothing(client, container, digested):
    client.write("Billing listens on port 8123", kind="decision")
    client.write("make qwyjib.o needs care: run make all", kind="lesson")
    digested()
    client.post("/v1/incognito", {"session_id": "s1"})
    for one in EVERY_EVENT:
        assert is_silent(post(client, event(**one)))
    assert traces(container) == []


def test_incognito_default_workspace_prevents_project_workspaces(client, container, tmp_path):
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    client.post("/v1/incognito", {"session_id": "s1"})
    for one in EVERY_EVENT:
        assert is_silent(post(client, event(cwd=str(project), **one)))
    flush_notes(container)
    assert container.settings.paths.workspace_ids() == ["default"]
    tool(client, "Edit", {"file_path": "x.py"}, cwd=str(project), session_id="s2")
    flush_notes(container)
    for one in EVERY_EVENT:
        assert is_silent(post(client, event(cwd=str(project), **one)))
    assert traces(container) == []


def test_incognito_workspace_stores_and_injects_nothing(client, container, digested):
    client.write("Billing listens on port 8123", kind="decision")
    digested()
    container.settings.paths.workspace("default").config.write_text("incognito = true\n")
    for one in EVERY_EVENT:
        assert is_silent(post(client, event(**one)))
    assert traces(container) == []


@pytest.mark.parametrize(
    "body",
    [
        {"type": "agent-turn-complete", "thread-id": "t", "input-messages": ["hi"]},
        {"hook_event_name": "PostToolUse", "tool_input": ["text"]},
        {"hook_event_name": "PreToolUse", "tool_name": 7},
        {"hook_event_name": ["Stop"]},
        {"event": "beforeSubmitPrompt", "conversation_id": "c"},
    ],
)
def test_unexpected_hook_json_is_logged_and_answered_silently(client, body):
    assert is_silent(post(client, body))
    assert len(list_logged(client)) == 1


@pytest.mark.parametrize("name", sorted({one["hook_event_name"] for one in EVERY_EVENT}))
def test_internal_error_in_a_hook_is_logged_and_answered_silently(client, monkeypatch, name):
    client.write("Something")

    def broken(*_args, **_named):
        raise RuntimeError("broken inside")

    for method in ("answer_prompt", "start_session", "guard_tool_use", "record_tool_use", "end_turn", "flush"):
        monkeypatch.setattr(AgentSessionService, method, broken)
    assert is_silent(post(client, event(hook_event_name=name)))
    assert [line for line in list_logged(client) if "broken inside" in line] or name == "SubagentStop"


def test_oversized_hook_body_is_answered_silently(client):
    huge = {"hook_event_name": "PostToolUse", "tool_name": "Write", "tool_input": {"content": "x" * (9 << 20)}}
    assert is_silent(post(client, event(**huge)))
    assert is_silent(client.post("/hooks/gemini", event(**huge)))


def test_injected_text_respects_hook_max_chars(client, container, digested):
    for number in range(30):
        client.write(f"Billing listens on port {8000 + number} in region {number} " + "of the old estate " * 20)
    digested()
    told = context(post(client, event(prompt=PORT)))
    assert 0 < len(told) <= container.settings.hook_max_chars


def list_refusals(client):
    return [e["message"] for e in client.get("/v1/errors").get_json()["items"] if e["component"] == "hooks"]


def test_a_refused_hook_is_in_the_error_log_once_a_minute(client, app):
    stranger = app.test_client()
    for _ in range(3):
        headers = {"Host": "127.0.0.1:7077", "Authorization": "Bearer former"}
        assert stranger.post("/hooks/claude-code", json=event(), headers=headers).status_code == 401
        assert stranger.get("/v1/errors", headers=headers).status_code == 401
    [refusal] = list_refusals(client)
    assert refusal.startswith("A hook event at /hooks/claude-code was rejected")


def test_codex_prompt_hook_injects_memories(client, digested):
    client.write("Billing listens on port 8123")
    digested()
    answer = client.post("/hooks/codex", event(prompt="Which port does billing listen on?", turn_id="t", model="m"))
    assert "8123" in answer.get_json()["hookSpecificOutput"]["additionalContext"]
    assert is_silent(client.post("/hooks/codex", event(hook_event_name="Stop", last_assistant_message="done")))


def test_gemini_prompt_hook_injects_memories_with_its_event_names(client, digested):
    client.write("Billing listens on port 8123")
    digested()
    answer = client.post(
        "/hooks/gemini", event(hook_event_name="BeforeAgent", prompt="Which port does billing listen on?")
    )
    output = answer.get_json()["hookSpecificOutput"]
    assert output["hookEventName"] == "BeforeAgent"
    assert "8123" in output["additionalContext"]


@pytest.mark.parametrize("body", [b"{", b"[1]", b"null", b'{"hook_event_name": 1}', b'{"tool_input": {"command": 5}}'])
@pytest.mark.parametrize("host", ["codex", "gemini"])
def test_unexpected_json_from_another_host_is_logged_and_silent(client, host, body):
    assert is_silent(client.call("POST", f"/hooks/{host}", data=body))
    assert len(list_logged(client)) == 1


def gemini_tool(tool, given, **response):
    fields = {"tool_name": tool, "tool_input": given, "tool_response": response}
    return event(hook_event_name="AfterTool", cwd="/srv/app") | fields


def test_the_end_of_a_gemini_session_whose_turns_are_stored_is_no_error(client, container, tmp_path):
    client.write("Billing listens on port 8123")
    chat = tmp_path / "chats" / "session-1.json"
    chat.parent.mkdir()
    chat.write_text('{"messages": []}')
    told = {"prompt": "Which port?", "prompt_response": "Port 8123.", "transcript_path": str(chat)}
    for name in ("AfterAgent", "SessionEnd"):
        assert is_silent(client.post("/hooks/gemini", event(hook_event_name=name, **told)))
    flush_notes(container)
    assert list_logged(client) == []


def test_gemini_tool_calls_are_recorded_with_their_outcome(client, container):
    client.write("Billing listens on port 8123")
    for sent in (
        gemini_tool("run_shell_command", {"command": "make test"}, llmContent="Output: no\nExit Code: 2\nPGID: 1"),
        gemini_tool("run_shell_command", {"command": "make test"}, llmContent="Output: fine\nPGID: 1"),
        gemini_tool("write_file", {"file_path": "/srv/app/a.py", "content": "x"}, llmContent="Successfully created"),
        gemini_tool("replace", {"file_path": "/srv/app/b.py"}, llmContent="no match", error={"message": "no match"}),
        gemini_tool("read_file", {"file_path": "/srv/app/b.py"}, llmContent="text"),
    ):
        assert is_silent(client.post("/hooks/gemini", sent))
    flush_notes(container)
    with container.workspace("default").database.read() as db:
        found = agent_sessions.list_actions(db, "s1", "", 10)
    assert sorted((one.target, one.ok) for one in found) == [
        ("a.py", True), ("b.py", False), ("make test", False), ("make test", True)
    ]  # fmt: skip


# Field reports: entries for the user and for the project both run, so that each event is delivered twice.


def test_an_event_that_is_delivered_twice_is_answered_and_noted_once(client, container, digested):
    client.write("Billing listens on port 8123")
    digested()
    for fields in ({"session_id": "s1"}, {"session_id": "s2", "prompt_id": "p1"}):
        assert "8123" in context(post(client, event(prompt=PORT, **fields)))
        assert is_silent(post(client, event(prompt=PORT, **fields)))
    for _ in range(2):
        assert is_silent(tool(client, "Bash", {"command": "make test"}))
        assert is_silent(post(client, event(hook_event_name="Stop", stop_hook_active=False)))
    assert is_silent(tool(client, "Bash", {"command": "make test"}))
    flush_notes(container)
    assert [one[1] for one in journal(container)] == ["make test"] * 3
    runs = [one["event"] for one in client.get("/v1/hook-runs").get_json()["items"]]
    assert runs.count("UserPromptSubmit") == 2


def test_prompt_delivered_twice_runs_its_memory_command_once(client):
    first, second = (post(client, event(prompt="remember this: we deploy on Tuesdays")) for _ in range(2))
    assert "keeps it" in context(first)
    assert is_silent(second)


def test_truncated_memory_reports_its_original_length(client):
    said = context(post(client, event(prompt="remember this: " + "the rack is blue. " * 700)))
    assert "only the first 10,000 of 12,599 characters" in said


@pytest.mark.parametrize("prompt", ["remember this: the key is with Deniz", "don't remember this: my knee hurts"])
def test_an_order_that_a_full_disk_prevents_is_reported(client, monkeypatch, prompt):
    def fail(*_given, **_named):
        raise StoreFull("the disk is full; free some space")

    monkeypatch.setattr(claude_code, "workspace_of_folder", fail)
    shown = context(post(client, event(prompt=prompt)))
    assert "did not carry out the order" in shown
    assert "full" in shown
    assert is_silent(post(client, event()))


@pytest.mark.parametrize("route", ["claude-code", "codex"])
def test_a_call_that_is_delivered_twice_is_decided_the_same_and_shown_once(client, container, route):
    lesson = client.write("Run make migrate before make test", **CRITICAL)
    sent = event(hook_event_name="PreToolUse", tool_name="Bash", tool_input=MIGRATE, tool_use_id="t1")
    with ThreadPoolExecutor(4) as threads:
        answers = [one.get_json() for one in threads.map(lambda _: client.post(f"/hooks/{route}", sent), range(4))]
    assert answers[0]["hookSpecificOutput"]["permissionDecision"] == ("ask" if route == "claude-code" else "deny")
    assert answers == [answers[0]] * 4
    flush_notes(container)
    [record] = client.get("/v1/lessons").get_json()["items"]
    assert (record["id"], record["shown"]) == (lesson, 1)
    # Another call of the same is asked about, or passes where it was refused once.
    again = client.post(f"/hooks/{route}", sent | {"tool_use_id": "t2"}).get_json(silent=True)
    assert again == (answers[0] if route == "claude-code" else None)


def test_the_runs_of_one_workspace_are_listed(client, tmp_path, digested):
    project = tmp_path / "project"
    project.mkdir()
    (project / ".reverie.toml").write_text('workspace = "glazier"\n', encoding="utf-8")
    client.write("Billing listens on port 8123")
    digested()
    post(client, event(cwd=str(project)))
    post(client, event(session_id="s2"))
    listed = client.get("/v1/hook-runs?workspace=default").get_json()["items"]
    assert [run["workspace"] for run in listed] == ["default"]
    assert len(client.get("/v1/hook-runs").get_json()["items"]) == 2
    assert client.get("/v1/hook-runs?workspace=../x").status_code == 422
