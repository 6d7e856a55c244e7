"""What a person does not want kept is in no file afterwards, however it came."""

import json

import pytest

from pipeline.features.workspaces.identify import identify
from tests.fakes.in_process import digest_all, flush_notes
from tests.fakes.statements import MarkedStatements

SECRET = "qwyjibofier"
FILE = "e5bb4d6d-0000-4000-8000-000000000001"


@pytest.fixture
def worker(worker):
    worker._statements = MarkedStatements()
    worker._classifier = lambda *_given: worker._statements
    return worker


@pytest.fixture
def host(client, container, worker, tmp_path):
    return Host(client, container, worker, tmp_path / ".claude" / "projects" / "slug" / f"{FILE}.jsonl")


class Host:
    """A host whose prompts, tools and transcripts reach Reverie."""

    def __init__(self, client, container, worker, transcript):
        self.client, self.container, self.worker, self.transcript = client, container, worker, transcript
        self.cwd, self.count = "", 0
        transcript.parent.mkdir(parents=True)

    def hook(self, name, **fields):
        body = {"hook_event_name": name, "session_id": FILE, "cwd": self.cwd, **fields}
        answer = self.client.post("/hooks/claude-code", body)
        assert answer.status_code == 200
        return answer.get_data(as_text=True)

    def write(self, role, text):
        self.count += 1
        record = {
            "type": role,
            "uuid": f"00000000-0000-4000-8000-{self.count:012}",
            "sessionId": FILE,
            "message": {"role": role, "content": text},
        }
        with self.transcript.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def turn(self, prompt, answer="ok", command=None):
        """Run a turn to its end, and return what the agent was shown."""
        shown = self.hook("UserPromptSubmit", prompt=prompt)
        self.write("user", prompt)
        if command:
            self.hook("PostToolUse", tool_name="Bash", tool_input={"command": command}, tool_response={})
        self.write("assistant", answer)
        self.hook("Stop", transcript_path=str(self.transcript))
        flush_notes(self.container)
        return shown

    def digest(self):
        flush_notes(self.container)
        # What is captured is digested like any other memory.
        for workspace in 2 * self.container.settings.paths.workspace_ids():
            digest_all(self.worker, workspace)
        self.container.operations.tables.erase_deleted_data()

    def said(self):
        answer = self.client.get(f"/v1/sessions/{FILE}")
        return [] if answer.status_code == 404 else [turn["content"] for turn in reversed(answer.get_json()["said"])]

    def broken(self):
        [rule] = self.client.get("/v1/lessons/report").get_json()["items"]
        return [act["target"] for use in rule["uses"] for act in use["acts"] if not act["is_kept"]]

    def contents(self):
        return [memory["content"] for memory in self.client.get("/v1/memories").get_json()["items"]]

    def traces(self, word=SECRET):
        self.digest()
        files = [file for file in self.container.settings.home.rglob("*") if file.is_file()]
        return [file.name for file in files if word in file.read_bytes().decode(errors="replace").lower()]


@pytest.mark.files
@pytest.mark.parametrize(
    "said",
    [
        f"Don't remember this: rule: always ask the {SECRET}.",
        f"Off the record, the {SECRET} is broken. Where does billing listen?",
        f"Merk dir das bitte nicht: der {SECRET} ist kaputt.",
        f"No guardes esto en tu memoria: el {SECRET} no funciona.",
        f"Ne retiens pas ça : le {SECRET} est en panne.",
    ],
)
def test_no_file_contains_the_message(client, host, said):
    client.write("Billing listens on port 8123")
    assert "does not store" in host.turn(said, f"Noted, the {SECRET}.", f"pytest tests/{SECRET}.py")
    host.turn("rule: always use pnpm", "fine")
    assert host.traces() == []
    assert host.said() == ["rule: always use pnpm", "fine"]
    assert "rule: always use pnpm" in host.contents()


@pytest.mark.files
def test_the_last_turn_is_forgotten_with_its_memories(client, host):
    client.write("Billing listens on port 8123")
    host.turn("rule: always use pnpm")
    host.turn(f"rule: always ask the {SECRET}", f"Noted, the {SECRET}.", f"pytest tests/{SECRET}.py")
    host.digest()
    assert any(SECRET in text for text in host.contents())
    assert "deleted the user's last message" in host.turn("forget what I just said")
    assert host.traces() == []
    assert host.said() == ["rule: always use pnpm", "ok"]
    assert sorted(host.contents()) == ["Billing listens on port 8123", "rule: always use pnpm"]


@pytest.mark.files
def test_the_judged_acts_of_the_last_turn_are_forgotten_with_it(client, host):
    client.write("Use pnpm in this project, never npm", kind="lesson")
    host.digest()
    host.hook("SessionStart", source="startup")
    host.turn("Install the packages, please", command="npm install left-pad")
    host.turn("Install the other one, please", command=f"npm install {SECRET}")
    assert host.broken() == ["npm install left-pad", f"npm install {SECRET}"]
    assert "deleted the user's last message" in host.turn("forget what I just said")
    assert host.broken() == ["npm install left-pad"]
    assert host.traces() == []


@pytest.mark.files
def test_nothing_of_a_session_is_in_a_file_until_it_is_allowed(client, host):
    client.write("Billing listens on port 8123")
    host.turn("rule: always use pnpm")
    host.digest()
    assert "stores nothing of this session" in host.turn("don't save anything in this session")
    host.turn(f"remember this: always ask the {SECRET}", f"the {SECRET}", f"pytest tests/{SECRET}.py")
    written = {"content": f"Always ask the {SECRET}.", "source": "agent", "session_id": FILE}
    refused = client.post("/v1/memories", written).get_json()
    assert (refused["outcome"], refused["reason"]) == ("rejected", "incognito")
    assert "again" in host.turn("ok, you can save again")
    assert host.traces() == []
    host.turn("rule: never push on Friday")
    host.digest()
    assert "rule: never push on Friday" in host.contents()


def test_forgetting_a_silent_or_interrupted_turn_keeps_older_turns(client, host):
    client.write("Billing listens on port 8123")
    host.turn("rule: always use pnpm")
    host.turn(f"Don't remember this: the {SECRET} is blue.")
    host.turn("forget what I just said")
    # A host reports no end of a turn that the person interrupts.
    host.hook("UserPromptSubmit", prompt=f"rule: always ask the {SECRET}")
    host.write("user", f"rule: always ask the {SECRET}")
    host.turn("forget what I just said")
    assert host.traces() == []
    assert "rule: always use pnpm" in host.contents()
    assert host.said() == ["rule: always use pnpm", "ok"]


def test_agent_cannot_store_text_its_user_asked_not_to_save(client, host):
    client.write("Billing listens on port 8123")
    host.hook("UserPromptSubmit", prompt=f"Don't remember this: the {SECRET} is blue.")
    written = {"content": f"The {SECRET} is blue.", "source": "agent", "session_id": FILE}
    assert client.post("/v1/memories", written).get_json()["outcome"] == "rejected"
    host.hook("UserPromptSubmit", prompt="Where does billing listen?")
    assert client.post("/v1/memories", written).get_json()["outcome"] == "created"


def test_a_silent_session_of_a_new_project_is_silent_in_its_own_workspace(client, container, host, tmp_path):
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    host.cwd = str(project)
    host.turn("don't save anything in this session")
    written = {"content": f"The {SECRET} is blue.", "source": "agent", "session_id": FILE}
    answer = client.post("/v1/memories", written, workspace=identify(project).id)
    assert answer.get_json()["outcome"] == "rejected"
    host.turn(f"the {SECRET}", command=f"pytest tests/{SECRET}.py")
    assert host.traces() == []


def test_a_late_answer_is_not_read_either(client, host):
    client.write("Billing listens on port 8123")
    prompt = f"Don't remember this: the {SECRET} is blue."
    host.hook("UserPromptSubmit", prompt=prompt)
    host.write("user", prompt)
    host.hook("Stop", transcript_path=str(host.transcript))
    host.hook("UserPromptSubmit", prompt="Fix the parser")
    host.write("assistant", f"I see, the {SECRET}.")
    host.write("user", "Fix the parser")
    host.write("assistant", "Done.")
    host.hook("Stop", transcript_path=str(host.transcript))
    assert host.traces() == []
    assert host.said() == ["Fix the parser", "Done."]


@pytest.mark.files
def test_no_save_commands_apply_to_messages_sent_by_clients(client, host):
    def send(*texts):
        messages = [{"role": "user", "content": text} for text in texts]
        return client.post("/v1/turns", {"session_id": FILE, "messages": messages}).get_json()

    assert send("rule: always use pnpm", f"Don't remember this: the {SECRET} is blue.")["queued"] == 1
    assert send(f"rule: always ask the {SECRET}")["queued"] == 1
    host.digest()
    assert "deleted" in send("forget what I just said")["done"][0]
    assert send("don't save anything in this session", f"the {SECRET}")["queued"] == 0
    assert send(f"the {SECRET} again")["queued"] == 0
    assert send("you can save again", "rule: never push on Friday")["queued"] == 1
    assert host.traces() == []
    assert host.said() == ["rule: always use pnpm", "rule: never push on Friday"]


@pytest.mark.parametrize(
    "said",
    [
        "Would you keep in mind that rule: the vault is in Graz?",
        "Please note that rule: the vault is in Graz.",
        "oh forget it, it works now",
        "vergiss es",
        "laisse tomber, oublie",
        "Do not write this to disk.",
        "please delete the last message in the queue and replay it",
    ],
)
def test_a_manner_of_speaking_deletes_and_hides_nothing(host, said):
    host.turn("rule: always use pnpm")
    host.digest()
    shown = host.turn(said)
    host.digest()
    assert [words for words in ("deleted", "not store", "stores nothing") if words in shown] == []
    assert said in host.said()
    assert "rule: always use pnpm" in host.contents()


def test_an_order_that_may_mean_the_turn_before_only_archives_its_memories(client, host):
    host.turn("rule: always use pnpm")
    host.turn("rule: the vault is in Graz")
    host.digest()
    (memory,) = (one for one in client.get("/v1/memories").get_json()["items"] if "Graz" in one["content"])
    shown = host.turn("oops wrong window, remove that from your memory")
    assert "deleted nothing" in shown
    assert memory["id"][-8:] in shown
    host.digest()
    assert host.contents() == ["rule: always use pnpm"]
    assert host.said() == ["rule: always use pnpm", "ok", "rule: the vault is in Graz", "ok"]
    assert client.post(f"/v1/memories/{memory['id']}/restore").status_code == 200
    assert "rule: the vault is in Graz" in host.contents()


def test_unread_turn_yields_no_memory_after_an_ambiguous_forget_command(host):
    host.turn("rule: the vault is in Graz")
    host.turn("strike that from what you remember")
    host.digest()
    assert host.contents() == []
    assert "rule: the vault is in Graz" in host.said()


@pytest.mark.files
def test_nothing_of_a_private_block_is_stored(client, host):
    client.write("Billing listens on port 8123")
    host.turn(f"<private>our customer {SECRET} pays 40k</private> rule: shorten the invoice template")
    host.turn(f"rule: always use pnpm\n<PRIVATE>\nremember this: the {SECRET} is blue\n</PRIVATE>")
    host.turn(f"<private>the {SECRET} is blue</private>", f"I see, the {SECRET}.", f"pytest tests/{SECRET}.py")
    assert host.traces() == []
    assert host.said() == ["rule: shorten the invoice template", "ok", "rule: always use pnpm", "ok"]
    assert "rule: shorten the invoice template" in host.contents()
