"""Readers: their sessions are told a thing once, as a writer's are, and the workspace keeps nothing else of them."""

import pytest

from config.declared import Secret
from config.settings_edits import save_workspace_setting
from pipeline.store import agent_sessions
from tests.fakes.client import CheckedClient
from tests.fakes.in_process import dump, fast_settings, fit_intents, flush_notes, open_web
from tests.fakes.people import PersonClient, add_person
from web.app import create_app

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
def tell(container):
    """Return what an event of a host's is answered, once everything before it is noted."""

    def tell(client, event, session="s1", **fields):
        flush_notes(container)
        body = {"hook_event_name": event, "session_id": session, "cwd": "", **fields}
        return client.post("/hooks/claude-code", body).get_data(as_text=True)

    return tell


def use(tell, client, event, **fields):
    return tell(client, event, tool_name="Bash", tool_input=MIGRATE, **fields)


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


def do_everything(tell, client, folder):
    """Call whatever a reader may that a writer's call of would leave something behind."""
    (folder / ".git").mkdir(exist_ok=True)
    where = {"cwd": str(folder)}
    tell(client, "SessionStart", source="startup", **where)
    for prompt in (PROMPT, "Remember this: the moon is full.", "Forget the port of the billing service."):
        tell(client, "UserPromptSubmit", prompt=prompt, **where)
        tell(client, "UserPromptSubmit", prompt=prompt, agent_id="scout", **where)
    for event in ("PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolUse", "PreToolUse"):
        use(tell, client, event, **where)
    tell(client, "Stop", said=[{"role": "user", "content": "We never deploy on Fridays."}], **where)
    tell(client, "PreCompact", **where)
    tell(client, "SessionStart", source="compact", **where)
    tell(client, "UserPromptSubmit", prompt=PROMPT, **where)
    tell(client, "SessionEnd", **where)
    assert client.find_ids(PROMPT, viewer={"session": "s1"})
    client.post("/v1/prepare", {"message": "When do I run make migrate?", "session_id": "s1", "cwd": str(folder)})
    client.get("/v1/lessons?q=make+migrate&session=s1")


def test_a_prompt_tells_a_reader_once(tell, rita, walt):
    assert FACT in tell(rita, "UserPromptSubmit", prompt=PROMPT)
    assert tell(rita, "UserPromptSubmit", prompt=PROMPT) == ""
    # Another session, another agent of this one, and what another person calls by the same name.
    assert FACT in tell(rita, "UserPromptSubmit", "s2", prompt=PROMPT)
    assert FACT in tell(rita, "UserPromptSubmit", prompt=PROMPT, agent_id="scout")
    assert FACT in tell(walt, "UserPromptSubmit", prompt=PROMPT)
    # Where its context was compacted, an agent may have lost what it was told.
    tell(rita, "SessionStart", source="compact")
    assert FACT in tell(rita, "UserPromptSubmit", prompt=PROMPT)


@pytest.mark.parametrize("prompt", ["Remember this: the moon is full.", "Forget that."])
def test_a_reader_hears_that_nothing_was_kept_or_forgotten(tell, rita, prompt):
    assert "Reverie changes nothing here: who asks is a reader." in tell(rita, "UserPromptSubmit", prompt=prompt)


def test_what_a_session_begins_with_comes_to_a_reader_with_the_first_prompt_about_it(home, tell, rita):
    home.write("We decided that billing uses port 8123", kind="decision")
    assert "We decided" in tell(rita, "SessionStart", source="startup")
    prompt = "Which port did we decide that billing uses?"
    assert "We decided" in tell(rita, "UserPromptSubmit", prompt=prompt)
    assert "We decided" not in tell(rita, "UserPromptSubmit", prompt=prompt)
    assert "We decided" in tell(rita, "UserPromptSubmit", "s2", prompt=prompt)


def test_what_a_reader_let_pass_is_not_asked_again_in_their_session(home, tell, rita, walt):
    home.write("Run make migrate before make test", **CRITICAL)
    for event in ("PreToolUse", "PostToolUseFailure", "PreToolUse"):
        asked = use(tell, rita, event)
    # Refused, and then it did not work: nothing was let pass.
    assert "before make test" in asked
    use(tell, rita, "PostToolUse")
    assert use(tell, rita, "PreToolUse") == ""
    assert use(tell, rita, "PreToolUse", session="s2")
    assert use(tell, walt, "PreToolUse")
    assert tell(rita, "PreToolUse", tool_name="Bash", tool_input={"command": "make test"})
    # A lesson that was learned since is news.
    home.write("make migrate locks the table of orders", **CRITICAL)
    asked = use(tell, rita, "PreToolUse")
    assert "locks the table" in asked
    assert "before make test" not in asked


def test_what_was_done_before_a_lesson_was_told_lets_nothing_pass(home, tell, rita):
    use(tell, rita, "PostToolUse")
    home.write("Run make migrate before make test", **CRITICAL)
    assert use(tell, rita, "PreToolUse")


def test_of_a_reader_only_what_their_session_was_told_is_noted(container, home, tell, rita, walt, tmp_path):
    home.write("Run make migrate before make test", **CRITICAL)
    before, of_sessions = read_rows(container)
    assert of_sessions == []
    do_everything(tell, rita, tmp_path)
    after, of_sessions = read_rows(container)
    assert after == before
    assert of_sessions
    assert all("'rita␟s1'" in row for row in of_sessions)
    assert str(tmp_path) not in str(of_sessions)


def test_what_a_reader_was_told_changes_nobody_elses_answers(container, home, tell, rita, walt, tmp_path):
    fit_intents(container)

    def ask():
        found = walt.recall(PROMPT, explain=True)["results"]
        prepared = walt.post("/v1/prepare", {"message": PROMPT}).get_json()
        return found, prepared["text"], [one.get("/v1/sessions").get_json()["items"] for one in (walt, home)]

    asked = ask()
    do_everything(tell, rita, tmp_path)
    flush_notes(container)
    assert ask() == asked
    assert [one["id"] for one in rita.get("/v1/sessions").get_json()["items"]] == ["s1"]
    assert FACT in tell(walt, "UserPromptSubmit", prompt=PROMPT)


@pytest.mark.parametrize("name", ["walt␟s1", "s" * 10_000])
def test_a_reader_names_no_session_that_is_anothers_or_has_no_end(container, tell, rita, name):
    before = read_rows(container)
    # Such a name is dropped: the prompt is answered, and no session notes it.
    assert FACT in tell(rita, "UserPromptSubmit", name, prompt=PROMPT)
    assert read_rows(container) == before


def test_what_a_readers_session_was_told_is_forgotten_when_it_rests(container, tell, rita):
    assert FACT in tell(rita, "UserPromptSubmit", "old", prompt=PROMPT)
    flush_notes(container)
    with container.databases.get(TEAM).write() as db:
        agent_sessions.end_turn(db, "rita␟old", "2020-01-01T00:00:00.000Z")
    tell(rita, "UserPromptSubmit", "new", prompt=PROMPT)
    _, of_sessions = read_rows(container)
    assert "rita␟new" in str(of_sessions)
    assert "rita␟old" not in str(of_sessions)


@pytest.mark.parametrize("role", ["reader", "writer", "owner", None])
def test_in_a_workspace_that_is_read_only_nothing_is_noted_of_anybody(container, home, join, tell, role, tmp_path):
    client = home if role is None else join("Anna", role)
    home.write("Run make migrate before make test", **CRITICAL)
    # What was noted before stays as well.
    tell(client, "UserPromptSubmit", prompt=PROMPT)
    tell(client, "PreCompact")
    save_workspace_setting(container.stores.configs, TEAM, "read_only", True)
    before = read_rows(container), read_store(container)
    do_everything(tell, client, tmp_path)
    # What was asked beside it is written now, if anything was noted.
    tell(client, "PreCompact")
    assert (read_rows(container), read_store(container)) == before


def read_store(container):
    """Return the bytes of the workspace's store, where files keep it."""
    folder = container.settings.paths.workspace(TEAM).root
    return {file.name: file.read_bytes() for file in folder.glob("events.sqlite*") if not file.name.endswith("-shm")}
