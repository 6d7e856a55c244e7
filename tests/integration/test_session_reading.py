"""Hooks and the import read one conversation by one rule: what the person said, where, and what they took back."""

import json
import os

import pytest

from pipeline.features.workspaces.identify import identify
from pipeline.kernel.times import utc_now
from pipeline.sessions.import_usecases import ImportOptions, import_sessions
from pipeline.sessions.intake_usecases import SessionIntake
from pipeline.sessions.readers.reader import Places
from tests.fakes.in_process import digest_all, flush_notes
from tests.fakes.statements import MarkedStatements
from web.hooks import claude_code
from web.hooks.spool.delivery import SpoolDelivery
from web.hooks.spool.files import deliver_held
from web.http.app import create_app

SESSION, FORK = "0d9c1e58-5a0e-4f8a-9f0e-1b2c3d4e5f60", "5f3a7c21-88d4-4c0b-8a51-6e7f80912a3b"
REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). "
)


class Talk:
    """A session of Claude Code: its transcript grows, and its hooks run."""

    def __init__(self, client, container, worker, home, project, session=SESSION):
        self.client, self.container, self.worker, self.home, self.project = client, container, worker, home, project
        self.session = session
        self.file = home / ".claude" / "projects" / "slug" / f"{session}.jsonl"
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.count = 0
        self.last = None

    def add(self, kind, **fields):
        self.count += 1
        record = {
            "type": kind,
            "uuid": f"{self.session[:8]}-{self.count:04}",
            "parentUuid": self.last,
            "sessionId": self.session,
            "timestamp": f"2026-11-24T{9 + self.count // 60:02}:{self.count % 60:02}:00.000Z",
            "cwd": str(self.project),
            "entrypoint": "cli",
            "isSidechain": False,
        } | fields
        with self.file.open("a", encoding="utf-8") as log:
            log.write(json.dumps(record) + "\n")
        self.last = record["uuid"]
        return self.last

    def say(self, text, **fields):
        return self.add("user", message={"role": "user", "content": text}, **fields)

    def reply(self, text="Done.", **fields):
        return self.add(
            "assistant", message={"role": "assistant", "content": [{"type": "text", "text": text}]}, **fields
        )

    def call(self, key, name="Bash", **arguments):
        block = {"type": "tool_use", "id": key, "name": name, "input": arguments}
        return self.add("assistant", message={"role": "assistant", "content": [block]})

    def result(self, key, text, **fields):
        block = {"type": "tool_result", "tool_use_id": key, "content": text} | fields.pop("block", {})
        return self.add("user", message={"role": "user", "content": [block]}, **{"toolUseResult": text} | fields)

    def queue(self, text):
        operation = {"type": "queue-operation", "sessionId": self.session, "timestamp": "2026-11-24T09:00:30.000Z"}
        with self.file.open("a", encoding="utf-8") as log:
            for name in ("enqueue", "remove"):
                log.write(json.dumps(operation | {"operation": name, "content": text}) + "\n")
        return self.add("attachment", attachment={"type": "queued_command", "prompt": text, "commandMode": "prompt"})

    def send(self, name, **fields):
        event = {
            "hook_event_name": name,
            "session_id": self.session,
            "cwd": str(self.project),
            "transcript_path": str(self.file),
        }
        answer = self.client.post("/hooks/claude-code", event | fields)
        flush_notes(self.container)
        return answer.get_data(as_text=True)

    def turn(self, prompt, reply="Done.", **fields):
        self.send("UserPromptSubmit", prompt=prompt)
        self.say(prompt, **fields)
        self.reply(reply)
        self.send("Stop")

    def import_all(self):
        os.utime(self.file, (1_000_000_000 + self.count, 1_000_000_000 + self.count))
        return import_sessions(
            self.container.settings,
            self.container.stores.transcripts,
            self.container.workspace,
            ImportOptions(agents=("claude-code",)),
            places=Places(self.home, {}, "linux"),
        ).agents["claude-code"]

    def said(self, folder=None):
        found = self.client.get(f"/v1/sessions/{self.session}", workspace=identify(folder or self.project).id)
        return [] if found.status_code == 404 else [one["content"] for one in reversed(found.get_json()["said"])]

    def memories(self, folder=None, query=""):
        answer = self.client.get(f"/v1/memories{query}", workspace=identify(folder or self.project).id)
        return [] if answer.status_code == 404 else [one["content"] for one in answer.get_json()["items"]]

    def digest(self, folder=None):
        workspace = identify(folder or self.project).id
        if self.container.workspace(workspace).exists:
            # A memory that capture makes is digested too.
            for _ in range(2):
                digest_all(self.worker, workspace)


@pytest.fixture
def project(tmp_path):
    return make_project(tmp_path / "a")


def make_project(folder):
    (folder / ".git").mkdir(parents=True)
    return folder


@pytest.fixture
def talk(client, container, worker, tmp_path, project):
    worker._classifier = MarkedStatements
    return Talk(client, container, worker, tmp_path / "home", project)


WAYS = ("hooks", "import")


@pytest.fixture(params=WAYS)
def read(request, talk):
    """Read what was written to the session's file, by its hooks or by an import."""

    def read(one=talk):
        if request.param == "hooks":
            one.send("Stop")
        else:
            one.import_all()
        one.digest()

    return read


def test_prompt_queued_while_the_agent_works_is_stored(talk, read):
    talk.say("Look at the checkout")
    talk.call("t1", command="ls")
    talk.queue("rule: we use pnpm here, never npm")
    talk.result("t1", "a.py")
    talk.reply()
    read()
    assert "rule: we use pnpm here, never npm" in talk.said()
    assert talk.memories() == ["rule: we use pnpm here, never npm"]


def test_an_order_that_is_typed_while_the_agent_works_is_carried_out_once(talk):
    talk.turn("Look at the checkout")
    talk.queue("remember this: the auth tests need the Redis on port 6390")
    talk.reply()
    for _ in range(2):
        talk.send("Stop")
    talk.import_all()
    talk.send("SessionEnd")
    talk.digest()
    assert talk.memories() == ["the auth tests need the Redis on port 6390"]


def test_no_save_command_queued_while_the_agent_works_is_carried_out(talk, read):
    talk.say("Look at the checkout")
    talk.queue("don't save anything from this session from now on")
    talk.reply("Understood, nothing more.")
    read()
    talk.queue("rule: the bank pays in March")
    talk.reply("In March then.")
    read()
    assert talk.said() == ["Look at the checkout"]
    assert talk.memories() == []


def test_an_order_after_the_session_is_saved_again_is_carried_out(talk):
    talk.turn("don't save anything from this session from now on")
    talk.send("UserPromptSubmit", prompt="Look at the checkout")
    talk.say("Look at the checkout")
    talk.queue("the audit is in May")
    talk.queue("you can save this session again")
    talk.queue("remember this: the auth tests need the Redis on port 6390")
    talk.reply()
    talk.send("Stop")
    talk.digest()
    assert talk.memories() == ["the auth tests need the Redis on port 6390"]
    assert "the audit is in May" not in talk.said()
    talk.turn("rule: tabs everywhere")
    talk.digest()
    assert len(talk.memories()) == 2


def test_forget_command_applies_to_statements_of_the_same_turn(talk):
    talk.send("UserPromptSubmit", prompt="rule: the hospital tender ships on Fridays")
    talk.say("rule: the hospital tender ships on Fridays")
    talk.queue("rule: we use pnpm here")
    talk.queue("forget what I said about the hospital tender")
    talk.reply()
    talk.send("Stop")
    talk.digest()
    assert talk.memories() == ["rule: we use pnpm here"]


def test_forget_command_applies_to_memories_of_the_same_turn(talk):
    talk.turn("Look at the checkout")
    talk.queue("remember this: the auth tests need the Redis on port 6390")
    talk.queue("forget what I said about the auth tests and the Redis")
    talk.reply()
    talk.send("Stop")
    talk.digest()
    assert talk.memories() == []


INTERRUPTION = "[Request interrupted by user]"


def test_the_prompt_of_an_interrupted_turn_is_kept(talk, read):
    talk.say("Look at the checkout")
    talk.reply()
    talk.say("rule: the tests live in spec/")
    talk.call("t1", command="ls")
    talk.result("t1", "a.py")
    talk.say([{"type": "text", "text": INTERRUPTION}])
    talk.say("Go on")
    talk.reply("Yes.")
    read()
    assert talk.said() == ["Look at the checkout", "Done.", "rule: the tests live in spec/", "Go on", "Yes."]
    assert talk.memories() == ["rule: the tests live in spec/"]


def test_the_next_prompt_reads_an_interrupted_turn(talk):
    talk.turn("Look at the checkout")
    talk.send("UserPromptSubmit", prompt="rule: the tests live in spec/")
    talk.say("rule: the tests live in spec/")
    talk.say([{"type": "text", "text": INTERRUPTION}])
    talk.send("UserPromptSubmit", prompt="Go on")
    assert talk.said()[-1] == "rule: the tests live in spec/"


def test_an_interrupted_turn_can_be_deleted(talk):
    talk.turn("Look at the checkout")
    talk.send("UserPromptSubmit", prompt="rule: the tests live in spec/")
    talk.say("rule: the tests live in spec/", timestamp=utc_now())
    talk.say([{"type": "text", "text": INTERRUPTION}])
    talk.turn("Delete my last message")
    talk.digest()
    assert talk.said() == ["Look at the checkout", "Done."]
    assert talk.memories() == []


def test_an_interrupted_turn_of_an_incognito_session_is_never_read(talk):
    talk.turn("don't save anything from this session from now on")
    talk.send("UserPromptSubmit", prompt="rule: the audit is in May")
    talk.say("rule: the audit is in May")
    talk.say([{"type": "text", "text": INTERRUPTION}])
    talk.turn("you can save this session again")
    talk.turn("rule: tabs everywhere")
    talk.digest()
    assert talk.memories() == ["rule: tabs everywhere"]
    assert "rule: the audit is in May" not in talk.said()


SAID = [{"role": "user", "content": "rule: the tests live in spec/"}, {"role": "assistant", "content": "Done."}]


@pytest.mark.parametrize("name", ["Stop", "SessionEnd"])
@pytest.mark.parametrize("said", [None, SAID], ids=["in a file", "in the event"])
def test_acknowledged_hook_events_are_read_after_a_server_kill(talk, container, monkeypatch, name, said):
    talk.say(SAID[0]["content"])
    talk.reply()
    with monkeypatch.context() as patch:
        # Killed after the answer, before anything is read.
        patch.setattr(SessionIntake, "take", lambda *_arguments: None)
        talk.send(name, **({} if said is None else {"said": said}))
    assert talk.said() == []
    container.hook_deliveries = type(container.hook_deliveries)()
    deliver_held(container.settings.paths.spool)
    assert SpoolDelivery(container, create_app(container)).deliver_all() == 1
    assert talk.said() == [SAID[0]["content"], "Done."]
    assert list(container.settings.paths.spool.iterdir()) == []


@pytest.mark.parametrize("prompt", ["rule: tabs everywhere", "Don't save this: my salary is 100."])
def test_nothing_is_held_when_a_turn_is_read_or_silent(talk, container, prompt):
    talk.turn(prompt)
    spool = container.settings.paths.spool
    assert not spool.exists() or list(spool.iterdir()) == []


def test_event_text_is_stored_once_although_the_server_was_killed_after_it(talk, container, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(claude_code, "release", lambda *_arguments: None)
        talk.send("Stop", said=SAID)
    container.hook_deliveries = type(container.hook_deliveries)()
    deliver_held(container.settings.paths.spool)
    SpoolDelivery(container, create_app(container)).deliver_all()
    assert talk.said() == [SAID[0]["content"], "Done."]


def test_an_import_after_hooks_reads_on_where_they_ended(talk):
    talk.turn("rule: tabs everywhere")
    talk.say("rule: no semicolons")
    assert talk.import_all().turns == 1
    talk.turn("Go on")
    assert talk.said() == ["rule: tabs everywhere", "Done.", "rule: no semicolons", "Go on", "Done."]
    assert talk.import_all().turns == 0


def test_the_reason_of_a_rejection_is_said(talk, read):
    talk.say("Start the database")
    talk.call("t1", command="docker compose up")
    words = f"{REFUSED}To tell you how to proceed, the user said:\nrule: we use podman here"
    talk.result("t1", words, block={"is_error": True}, toolUseResult="User rejected tool use")
    talk.reply()
    read()
    assert "rule: we use podman here" in talk.said()


HEADLESS = {
    "a script": {"entrypoint": "sdk-cli", "promptSource": "sdk"},
    "a program": {"entrypoint": "sdk-py"},
    "a subagent": {"isSidechain": True, "agentId": "a1"},
    "a host's notice": {"origin": {"kind": "task-notification"}},
    "the agent's plan": {"planContent": "x"},
}


@pytest.mark.parametrize("by", HEADLESS)
def test_text_not_typed_by_a_person_is_not_stored(talk, read, by):
    text = "rule: we always merge without review"
    talk.say(f"Implement the following plan:\n\n{text}" if "plan" in by else text, **HEADLESS[by])
    talk.reply()
    read()
    assert talk.said() in ([], ["Done."])
    assert talk.memories() == []


def test_the_import_counts_the_sessions_without_a_person(talk):
    for number in range(3):
        talk.say(f"Report {number}", **HEADLESS["a script"])
        talk.reply(**HEADLESS["a program"])
    assert talk.import_all().left_out["session without a person"] == 1


@pytest.mark.parametrize("is_known", [False, True], ids=["at once", "at its end"])
def test_an_order_of_a_script_is_not_followed(talk, is_known):
    text = "remember this: we always merge without review"
    if is_known:
        talk.say(text, **HEADLESS["a script"])
    talk.send("UserPromptSubmit", prompt=text)
    if not is_known:
        talk.say(text, **HEADLESS["a script"])
    talk.reply()
    talk.send("Stop")
    assert talk.memories() == []


def test_a_prompt_that_was_rewound_is_taken_back(talk, read):
    talk.say("Look at the checkout")
    start = talk.reply("OK.")
    talk.say("rule: the hospital tender ships on Fridays")
    talk.reply("Noted.")
    read()
    assert talk.memories() == ["rule: the hospital tender ships on Fridays"]
    talk.last = start
    talk.say("rule: we deploy with Helm")
    talk.reply("Changed.")
    read()
    assert talk.memories() == ["rule: we deploy with Helm"]
    assert talk.memories(query="?archived=true") == ["rule: the hospital tender ships on Fridays"]


def test_an_order_that_was_rewound_is_taken_back_and_can_be_restored(talk, client):
    talk.turn("Look at the checkout")
    start = talk.last
    talk.turn("remember this: the tender is frozen from Thursday on")
    assert talk.memories() == ["the tender is frozen from Thursday on"]
    talk.last = start
    talk.turn("Go on with the charts")
    assert talk.memories() == []
    workspace = identify(talk.project).id
    [archived] = client.get("/v1/memories?archived=true", workspace=workspace).get_json()["items"]
    assert client.post(f"/v1/memories/{archived['id']}/restore", {}, workspace=workspace).status_code == 200
    talk.turn("And the tests")
    assert talk.memories() == ["the tender is frozen from Thursday on"]


@pytest.fixture
def others(tmp_path):
    """Other projects: in another repository, that are switched off, and incognito."""
    return {name: make_project(tmp_path / name) for name in ("b", "off", "quiet")}


def test_each_record_belongs_to_the_project_of_its_folder(talk, read, others, container):
    for name, setting in (("off", "enabled = false"), ("quiet", "incognito = true")):
        config = container.settings.paths.workspace(identify(others[name]).id).config
        config.parent.mkdir(parents=True)
        config.write_text(f"{setting}\n")
    (talk.project / "src").mkdir()
    talk.say("rule: the labels of alpha are blue")
    talk.reply("Blue.")
    for name in others:
        talk.say(f"rule: the labels of {name} are red", cwd=str(others[name]))
        talk.call("t1", command=f"make {name}")
        talk.result("t1", "ok", cwd=str(others[name]))
        talk.reply(f"Red in {name}.", cwd=str(others[name]))
    talk.say("Back, please.", cwd=str(talk.project / "src"))
    talk.reply("Here.", cwd=str(talk.project / "src"))
    read()
    talk.digest(others["b"])
    assert talk.said() == ["rule: the labels of alpha are blue", "Blue.", "Back, please.", "Here."]
    assert talk.said(others["b"]) == ["rule: the labels of b are red", "Red in b."]
    assert talk.memories() == ["rule: the labels of alpha are blue"]
    assert talk.memories(others["b"]) == ["rule: the labels of b are red"]
    for name in ("off", "quiet"):
        assert talk.said(others[name]) == []


def test_turns_after_a_folder_change_belong_to_the_persons_project(talk, read, others):
    beta = str(others["b"])
    talk.say("rule: the labels of alpha are blue")
    talk.call("t1", command=f"cd {beta} && make")
    talk.result("t1", "ok", cwd=beta)
    talk.reply("Blue.", cwd=beta)
    talk.say("rule: the printer of alpha is upstairs", cwd=beta)
    talk.call("t2", command="make again")
    talk.result("t2", "ok", cwd=beta)
    talk.reply("Upstairs.", cwd=beta)
    read()
    assert talk.said() == [
        *("rule: the labels of alpha are blue", "Blue."),
        *("rule: the printer of alpha is upstairs", "Upstairs."),
    ]
    assert talk.said(others["b"]) == []
    # The folder is still the agent's in the next part of the transcript, until the person moves.
    talk.say("rule: the paper is recycled", cwd=beta)
    talk.reply("Recycled.", cwd=beta)
    read()
    assert talk.said()[-2:] == ["rule: the paper is recycled", "Recycled."]
    talk.say("rule: the labels of off are red", cwd=str(others["off"]))
    talk.reply("Red.", cwd=str(others["off"]))
    read()
    assert talk.said(others["off"]) == ["rule: the labels of off are red", "Red."]


@pytest.mark.parametrize("shown_by", ["PostToolUse", "PreToolUse", "Stop", "SubagentStop"])
def test_command_after_a_folder_change_applies_to_the_persons_project(talk, others, shown_by):
    talk.send("SessionStart", source="startup")
    talk.turn("Look at the labels")
    talk.send("UserPromptSubmit", prompt="And at those of beta")
    beta = {"cwd": str(others["b"])}
    talk.send(shown_by, tool_name="Bash", tool_input={"command": "ls"}, **beta)
    talk.send("UserPromptSubmit", prompt="remember this: the labels are blue", **beta)
    assert (talk.memories(), talk.memories(others["b"])) == (["the labels are blue"], [])
    # The person moves: nothing of the agent's led there.
    talk.send("UserPromptSubmit", prompt="remember this: paper is recycled", cwd=str(others["off"]))
    assert talk.memories(others["off"]) == ["paper is recycled"]
    talk.send("UserPromptSubmit", prompt="remember this: ink is black")
    assert talk.memories() == ["ink is black", "the labels are blue"]


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("folder", ["", "src"])
def test_command_in_an_added_folder_applies_to_the_opened_folder(client, talk, others, is_known, folder):
    roots = [str(talk.project), str(others["b"])]
    event = {"hook_event_name": "beforeSubmitPrompt", "conversation_id": "c1", "workspace_roots": roots}
    if is_known:
        client.post("/hooks/cursor", event | {"prompt": "Look at the labels"})
    cwd = str(others["b"] / folder)
    client.post("/hooks/cursor", event | {"cwd": cwd, "prompt": "remember this: the labels are blue"})
    assert (talk.memories(), talk.memories(others["b"])) == (["the labels are blue"], [])


def test_an_import_after_hooks_adds_nothing_to_another_project(talk, others):
    talk.say("rule: the labels of alpha are blue")
    talk.reply("Blue.")
    talk.send("Stop")
    talk.say("rule: the labels of beta are red", cwd=str(others["b"]))
    talk.reply("Red.", cwd=str(others["b"]))
    talk.send("Stop")
    talk.import_all()
    assert talk.said() == ["rule: the labels of alpha are blue", "Blue."]
    assert talk.said(others["b"]) == ["rule: the labels of beta are red", "Red."]


def test_an_import_goes_on_in_the_folder_where_the_last_one_ended(talk, others):
    talk.say("rule: the labels of alpha are blue")
    talk.import_all()
    talk.say("rule: the labels of beta are red", cwd=str(others["b"]))
    talk.import_all()
    talk.add("assistant", cwd=None, message={"role": "assistant", "content": "Red."})
    talk.import_all()
    assert talk.said() == ["rule: the labels of alpha are blue"]
    assert talk.said(others["b"]) == ["rule: the labels of beta are red", "Red."]


def test_the_title_of_a_session_stays_in_its_first_project(talk, read, others):
    talk.add("ai-title", aiTitle="Labels of Alpha")
    talk.say("The labels of alpha are blue")
    talk.say("Here they are red", cwd=str(others["b"]))
    talk.reply("Red.", cwd=str(others["b"]))
    read()
    listed = talk.client.get("/v1/sessions", workspace=identify(others["b"]).id).get_json()
    assert "lpha" not in json.dumps(listed)


def test_branches_that_are_no_rewind_are_kept(talk, read):
    talk.say("rule: tabs everywhere")
    first = talk.call("t1", command="ls")
    talk.call("t2", command="pwd")
    # Results of parallel calls follow their own call; a subagent has a conversation of its own.
    talk.last = first
    talk.result("t1", "a.py")
    talk.queue("rule: no semicolons")
    talk.last = first
    talk.add("user", isSidechain=True, message={"role": "user", "content": "rule: of a subagent"})
    talk.last = first
    last = talk.result(
        "t2",
        f"{REFUSED}To tell you how to proceed, the user said:\nrule: use cd",
        block={"is_error": True},
        toolUseResult="User rejected tool use",
    )
    talk.reply("Done.")
    boundary = talk.add("system", subtype="compact_boundary", parentUuid=None, logicalParentUuid=talk.last)
    talk.say("Summary: rule: of a summary", isCompactSummary=True)
    talk.say("rule: tests first")
    talk.reply("Yes.")
    read()
    kept = ["rule: no semicolons", "rule: tabs everywhere", "rule: tests first", "rule: use cd"]
    assert sorted(talk.memories()) == kept
    assert last != boundary


def test_a_rewind_after_a_compaction_and_one_to_the_start_are_seen(talk, read):
    talk.say("rule: wrong window")
    talk.reply("Noted.")
    talk.last = None
    talk.say("rule: right window")
    start = talk.reply("Noted.")
    talk.say("rule: wrong again")
    talk.queue("rule: wrong too")
    talk.reply("Noted.")
    read()
    talk.add("system", subtype="compact_boundary", parentUuid=None, logicalParentUuid=start)
    talk.say("A summary", isCompactSummary=True)
    talk.say("Go on")
    talk.reply("Yes.")
    read()
    assert talk.memories() == ["rule: right window"]


def test_rewound_turns_are_marked_and_yield_no_memories(talk, read):
    start = talk.say("Look at the checkout")
    talk.say("We ship the tender to Kranich")
    talk.reply("To Kranich.")
    read()
    talk.last = start
    talk.say("We ship nothing")
    talk.reply("Fine.")
    read()
    workspace = identify(talk.project).id
    said = talk.client.get(f"/v1/sessions/{talk.session}", workspace=workspace).get_json()["said"]
    assert {one["content"]: one["role"] for one in said}["We ship nothing"] == "user"
    marked = [one["content"] for one in said if one["role"] == "taken back"]
    assert marked in ([], ["To Kranich.", "We ship the tender to Kranich"])


def test_words_that_are_said_again_after_a_rewind_are_kept(talk, read):
    start = talk.say("Look at the checkout")
    talk.say("rule: we use pnpm")
    talk.reply("OK.")
    read()
    talk.last = start
    talk.say("rule: we use pnpm")
    talk.reply("OK.")
    read()
    assert talk.memories() == ["rule: we use pnpm"]


ORDER = "Don't save anything in this session."


@pytest.fixture
def fork(talk):
    """A fork of a session in which nothing may be saved; its records are copied with the fork's id."""
    talk.turn(ORDER, "Understood.")
    talk.turn("The ruby list is in the bank")
    talk.send("SessionEnd")
    fork = Talk(talk.client, talk.container, talk.worker, talk.home, talk.project, FORK)
    copies = talk.file.read_text().replace(SESSION, FORK).replace(f'"uuid": "{FORK[:8]}', f'"uuid": "{SESSION[:8]}')
    fork.file.write_text(copies)
    fork.last, fork.count = talk.last, talk.count
    return fork


@pytest.mark.parametrize("is_late", [False, True], ids=["with its file", "with a file that comes later"])
def test_the_fork_of_an_incognito_session_is_incognito(fork, is_late):
    copies = fork.file.read_text()
    if is_late:
        fork.file.unlink()
    fork.send("SessionStart", source="resume")
    fork.send("UserPromptSubmit", prompt="rule: the auditor wants the list")
    fork.file.write_text(copies)
    fork.say("rule: the auditor wants the list")
    fork.reply("Noted.")
    fork.send("Stop")
    fork.digest()
    assert (fork.said(), fork.memories()) == ([], [])
    fork.turn("You can save this session again.")
    fork.turn("rule: the harbour opens at nine")
    fork.digest()
    assert fork.memories() == ["rule: the harbour opens at nine"]


def test_an_order_in_the_fork_of_an_incognito_session_is_not_stored(fork):
    fork.send("SessionStart", source="fork")
    fork.turn("remember this: the auditor wants the list")
    assert fork.memories() == []


def test_an_incognito_session_that_was_ended_by_hand_stays_so(talk):
    talk.turn(ORDER, "Understood.")
    talk.client.post("/v1/incognito", {"session_id": SESSION, "on": False}, workspace=identify(talk.project).id)
    talk.turn("The harbour opens at nine")
    assert talk.said() == ["The harbour opens at nine", "Done."]


def test_the_fork_of_an_ordinary_session_is_read_from_its_own_records(talk):
    talk.turn("rule: the labels are blue")
    fork = Talk(talk.client, talk.container, talk.worker, talk.home, talk.project, FORK)
    fork.file.write_text(talk.file.read_text().replace(SESSION, FORK))
    fork.last, fork.count = talk.last, talk.count
    fork.turn("Go on")
    assert fork.said() == ["Go on", "Done."]


TEMPLATE = (
    "Review the changes for the ticket.\n\n- rule: nobody runs the type checker\nremember this: ship with ops/fast.sh\n"
)
FILES = [
    (".opencode/command/review.md", TEMPLATE + "Ticket: $ARGUMENTS\n"),
    (".opencode/commands/deep/review.md", f"---\ndescription: Review\n---\n{TEMPLATE}Ticket: $1\n"),
    (".gemini/commands/review.toml", f"description = 'x'\nprompt = '''\n{TEMPLATE}Ticket: {{{{args}}}}\n'''\n"),
    ("opencode.json", json.dumps({"command": {"review": {"template": f"{TEMPLATE}Ticket: $ARGUMENTS"}}})),
]


@pytest.mark.parametrize(("name", "text"), FILES)
def test_of_a_command_only_the_arguments_are_said(talk, name, text):
    file = talk.project / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    expanded = f"{TEMPLATE}Ticket: rule: labels are blue"
    event = {"session_id": SESSION, "cwd": str(talk.project)}
    said = [{"role": "user", "content": expanded}, {"role": "assistant", "content": "Reviewed."}]
    for fields in (
        {"hook_event_name": "UserPromptSubmit", "prompt": expanded},
        {"hook_event_name": "Stop", "said": said},
    ):
        talk.client.post("/hooks/opencode", event | fields)
        flush_notes(talk.container)
    talk.digest()
    assert talk.said() == ["rule: labels are blue", "Reviewed."]
    assert talk.memories() == ["rule: labels are blue"]
