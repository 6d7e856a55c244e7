"""Readers: their sessions are told a thing once, as a writer's are, and the workspace keeps nothing else of them."""

import pytest

from config.declared import Secret
from config.workspace_configs import save_workspace_setting
from pipeline.kernel.store import agent_sessions
from tests.fakes.client import CheckedClient
from tests.fakes.in_process import dump, fast_settings, fit_intents, flush_notes, open_web
from tests.fakes.people import PersonClient, add_person
from web.http.app import create_app

TEAM = "team"
PROMPT = "Which port does the billing service use?"
FACT = "The billing service uses port 8123"
CRITICAL = {"kind": "lesson", "details": {"severity": "critical"}}
MIGRATE = {"command": "make migrate"}
# What is noted of a session's own, and of no memory.
OF_SESSIONS = ("seen", "agent_session")


@pytest.fixture
def container(tmp_path, served_at):
    container = open_web(fast_settings(tmp_path / "home", store=Secret(served_at)))
    yield container
    container.close()


@pytest.fixture
def app(container):
    return create_app(container)


@pytest.fixture
def home(app, container):
    client = CheckedClient(app, container.token)
    client.auth["X-Reverie-Workspace"] = TEAM
    client.write(FACT)
    return client


@pytest.fixture
def join(app, container, home):
    return lambda name, role: PersonClient(app, container, add_person(container, name, **{TEAM: role}), TEAM)


@pytest.fixture
def rita(join):
    return join("Rita", "reader")


@pytest.fixture
def walt(join):
    return join("Walt", "writer")


@pytest.fixture
def run_hook(container):
    """Return what an event of a host's is answered, once everything before it is noted."""

    def run_hook(client, event, session="s1", **fields):
        flush_notes(container)
        body = {"hook_event_name": event, "session_id": session, "cwd": "", **fields}
        return client.post("/hooks/claude-code", body).get_data(as_text=True)

    return run_hook


def use(run_hook, client, event, **fields):
    return run_hook(client, event, tool_name="Bash", tool_input=MIGRATE, **fields)


def read_rows(container):
    """Return the rows of the team's workspace that are about no session, and those that are."""
    flush_notes(container)
    with container.databases.get(TEAM).read() as db:
        rows = dump(db)
    of_sessions = [row for row in rows if row.startswith(tuple(_beginnings()))]
    return [row for row in rows if row not in of_sessions], of_sessions


def _beginnings():
    for table in OF_SESSIONS:
        yield from (f'INSERT INTO "{table}" ', f"{table}: ")


def do_everything(run_hook, client, folder):
    """Call whatever a reader may that a writer's call of would leave something behind."""
    (folder / ".git").mkdir(exist_ok=True)
    where = {"cwd": str(folder)}
    run_hook(client, "SessionStart", source="startup", **where)
    for prompt in (PROMPT, "Remember this: the moon is full.", "Forget the port of the billing service."):
        run_hook(client, "UserPromptSubmit", prompt=prompt, **where)
        run_hook(client, "UserPromptSubmit", prompt=prompt, agent_id="scout", **where)
    for event in ("PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolUse", "PreToolUse"):
        use(run_hook, client, event, **where)
    run_hook(client, "Stop", said=[{"role": "user", "content": "We never deploy on Fridays."}], **where)
    run_hook(client, "PreCompact", **where)
    run_hook(client, "SessionStart", source="compact", **where)
    run_hook(client, "UserPromptSubmit", prompt=PROMPT, **where)
    run_hook(client, "SessionEnd", **where)
    assert client.find_ids(PROMPT, viewer={"session": "s1"})
    client.post("/v1/prepare", {"message": "When do I run make migrate?", "session_id": "s1", "cwd": str(folder)})
    client.get("/v1/lessons?q=make+migrate&session=s1")


def test_reader_is_shown_a_memory_once_per_session(run_hook, rita, walt):
    assert FACT in run_hook(rita, "UserPromptSubmit", prompt=PROMPT)
    assert run_hook(rita, "UserPromptSubmit", prompt=PROMPT) == ""
    # Another session, another agent of this one, and what another person calls by the same name.
    assert FACT in run_hook(rita, "UserPromptSubmit", "s2", prompt=PROMPT)
    assert FACT in run_hook(rita, "UserPromptSubmit", prompt=PROMPT, agent_id="scout")
    assert FACT in run_hook(walt, "UserPromptSubmit", prompt=PROMPT)
    # Where its context was compacted, an agent may have lost what it was told.
    run_hook(rita, "SessionStart", source="compact")
    assert FACT in run_hook(rita, "UserPromptSubmit", prompt=PROMPT)


@pytest.mark.parametrize("prompt", ["Remember this: the moon is full.", "Forget that."])
def test_a_reader_hears_that_nothing_was_kept_or_forgotten(run_hook, rita, prompt):
    assert "Reverie changes nothing here: who asks is a reader." in run_hook(rita, "UserPromptSubmit", prompt=prompt)


def test_reader_is_shown_a_session_start_memory_again_by_a_prompt(home, run_hook, rita):
    home.write("We decided that billing uses port 8123", kind="decision")
    assert "We decided" in run_hook(rita, "SessionStart", source="startup")
    prompt = "Which port did we decide that billing uses?"
    assert "We decided" in run_hook(rita, "UserPromptSubmit", prompt=prompt)
    assert "We decided" not in run_hook(rita, "UserPromptSubmit", prompt=prompt)
    assert "We decided" in run_hook(rita, "UserPromptSubmit", "s2", prompt=prompt)


def test_command_allowed_by_a_reader_is_not_guarded_again_in_their_session(home, run_hook, rita, walt):
    home.write("Run make migrate before make test", **CRITICAL)
    for event in ("PreToolUse", "PostToolUseFailure", "PreToolUse"):
        asked = use(run_hook, rita, event)
    # Refused, and then it did not work: nothing was let pass.
    assert "before make test" in asked
    use(run_hook, rita, "PostToolUse")
    assert use(run_hook, rita, "PreToolUse") == ""
    assert use(run_hook, rita, "PreToolUse", session="s2")
    assert use(run_hook, walt, "PreToolUse")
    assert run_hook(rita, "PreToolUse", tool_name="Bash", tool_input={"command": "make test"})
    # A lesson that was learned since is news.
    home.write("make migrate locks the table of orders", **CRITICAL)
    asked = use(run_hook, rita, "PreToolUse")
    assert "locks the table" in asked
    assert "before make test" not in asked


def test_command_run_before_a_lesson_was_shown_is_still_guarded(home, run_hook, rita):
    use(run_hook, rita, "PostToolUse")
    home.write("Run make migrate before make test", **CRITICAL)
    assert use(run_hook, rita, "PreToolUse")


def test_reader_leaves_only_the_records_of_their_own_session(container, home, run_hook, rita, walt, tmp_path):
    home.write("Run make migrate before make test", **CRITICAL)
    before, of_sessions = read_rows(container)
    assert of_sessions == []
    do_everything(run_hook, rita, tmp_path)
    after, of_sessions = read_rows(container)
    assert after == before
    assert of_sessions
    assert all("'rita␟s1'" in row for row in of_sessions)
    assert str(tmp_path) not in str(of_sessions)


def test_injections_for_a_reader_do_not_change_other_peoples_answers(container, home, run_hook, rita, walt, tmp_path):
    fit_intents(container)

    def ask():
        found = walt.recall(PROMPT, explain=True)["results"]
        prepared = walt.post("/v1/prepare", {"message": PROMPT}).get_json()
        return found, prepared["text"], [one.get("/v1/sessions").get_json()["items"] for one in (walt, home)]

    asked = ask()
    do_everything(run_hook, rita, tmp_path)
    flush_notes(container)
    assert ask() == asked
    assert [one["id"] for one in rita.get("/v1/sessions").get_json()["items"]] == ["s1"]
    assert FACT in run_hook(walt, "UserPromptSubmit", prompt=PROMPT)


@pytest.mark.parametrize("name", ["walt␟s1", "s" * 10_000])
def test_a_reader_names_no_session_that_is_anothers_or_has_no_end(container, run_hook, rita, name):
    before = read_rows(container)
    # Such a name is dropped: the prompt is answered, and no session notes it.
    assert FACT in run_hook(rita, "UserPromptSubmit", name, prompt=PROMPT)
    assert read_rows(container) == before


def test_records_of_a_readers_idle_session_are_pruned(container, run_hook, rita):
    assert FACT in run_hook(rita, "UserPromptSubmit", "old", prompt=PROMPT)
    flush_notes(container)
    with container.databases.get(TEAM).write() as db:
        agent_sessions.end_turn(db, "rita␟old", "2020-01-01T00:00:00.000Z")
    run_hook(rita, "UserPromptSubmit", "new", prompt=PROMPT)
    _, of_sessions = read_rows(container)
    assert "rita␟new" in str(of_sessions)
    assert "rita␟old" not in str(of_sessions)


@pytest.mark.parametrize("role", ["reader", "writer", "owner", None])
def test_read_only_workspace_records_nothing_about_anyone(container, home, join, run_hook, role, tmp_path):
    client = home if role is None else join("Anna", role)
    home.write("Run make migrate before make test", **CRITICAL)
    # What was noted before stays as well.
    run_hook(client, "UserPromptSubmit", prompt=PROMPT)
    run_hook(client, "PreCompact")
    save_workspace_setting(container.stores.configs, TEAM, "read_only", True)
    before = read_rows(container), read_store(container)
    do_everything(run_hook, client, tmp_path)
    # What was asked beside it is written now, if anything was noted.
    run_hook(client, "PreCompact")
    assert (read_rows(container), read_store(container)) == before


def read_store(container):
    """Return the bytes of the workspace's store, where files keep it."""
    folder = container.settings.paths.workspace(TEAM).root
    return {file.name: file.read_bytes() for file in folder.glob("events.sqlite*") if not file.name.endswith("-shm")}
