"""What is learned on a git branch is shown on that branch, through hooks, API and tools, until the branch is merged."""

from dataclasses import replace
from itertools import count

import pytest
from werkzeug.datastructures import Headers

from pipeline.identity import identify
from pipeline.records.people import HOME_OWNER
from pipeline.services.turns import capture_settings
from tests.fakes.branched_repository import FEATURE, BranchedRepository, squash
from tests.fakes.in_process import digest_all, flush_notes, run_job
from tests.support.served import serve_app
from web.app import APIS
from web.client import Client
from web.contract import FOLDER_HEADER
from web.mcp.in_process import InProcessServer, Operations, Sender

TEXT = "The login form posts to the endpoint sessions"
PROMPT = "Which endpoint does the login form post to?"
COMMIT = {"tool_name": "Bash", "tool_input": {"command": "git commit -m 'Post the login form to sessions'"}}


@pytest.fixture
def home(home):
    return replace(home, branch_memory="on")


@pytest.fixture
def project(tmp_path):
    return BranchedRepository(tmp_path / "project")


@pytest.fixture
def workspace(project):
    return identify(project.root).id


class Caller:
    """Someone who works in the folder of a repository."""

    def __init__(self, client, workspace, folder):
        self.client, self.workspace, self.folder = client, workspace, folder

    @property
    def headers(self):
        return {FOLDER_HEADER: str(self.folder)}

    def write(self, content, **fields):
        body = {"content": content, "source": "agent", "importance": 0.8, **fields}
        answer = self.client.post("/v1/memories", body, workspace=self.workspace, headers=self.headers)
        return answer.get_json()["id"]

    def get(self, memory_id):
        return self.client.get(f"/v1/memories/{memory_id}", workspace=self.workspace).get_json()

    def find(self, **fields):
        body = {"query": PROMPT, **fields}
        return self.client.post("/v1/recall", body, workspace=self.workspace, headers=self.headers).get_json()[
            "results"
        ]

    def hook(self, name, session_id="s1", **fields):
        body = {"hook_event_name": name, "session_id": session_id, "cwd": str(self.folder), **fields}
        return self.client.post("/hooks/claude-code", body).get_data(as_text=True)


@pytest.fixture
def caller(client, workspace, project):
    return Caller(client, workspace, project.root)


def test_a_memory_of_a_branch_is_shown_there_until_it_is_merged(caller, project, worker):
    project.start()
    memory_id = caller.write(TEXT)
    memory = caller.get(memory_id)
    assert (memory["scope"], memory["branch"]) == ({"kind": "branch", "id": FEATURE}, FEATURE)
    digest_all(worker, caller.workspace)

    sessions = count()

    def shown():
        prepared = caller.client.post("/v1/prepare", {"message": PROMPT, "cwd": str(project.root)}).get_json()["text"]
        prompted = caller.hook("UserPromptSubmit", f"s{next(sessions)}", prompt=PROMPT)
        return [bool(caller.find()), TEXT in prepared, TEXT in prompted]

    assert shown() == [True, True, True]
    project.work()
    project.switch("main")
    assert shown() == [False, False, False]
    # A request that names the branch comes from it.
    assert caller.find(branch=FEATURE)
    squash(project)
    assert run_job(worker, caller.workspace, "branches").report.counts == {"branches": 1, "promoted": 1}
    digest_all(worker, caller.workspace)
    assert caller.get(memory_id)["scope"] == {"kind": "workspace", "id": None}
    assert shown() == [True, True, True]
    [act] = caller.client.get("/v1/audit", workspace=caller.workspace).get_json()["items"]
    caller.client.post(f"/v1/audit/{act['id']}/undo", workspace=caller.workspace)
    assert caller.get(memory_id)["scope"] == {"kind": "branch", "id": FEATURE}


def test_a_memory_of_a_deleted_branch_is_archived(caller, project, worker):
    project.start()
    memory_id = caller.write(TEXT)
    project.go_on()
    project.git("branch", "--quiet", "-D", FEATURE)
    assert run_job(worker, caller.workspace, "branches").report.counts == {"branches": 1, "archived": 1}
    assert caller.get(memory_id)["archived_at"] is not None
    restored = caller.client.post(f"/v1/memories/{memory_id}/restore", workspace=caller.workspace)
    assert restored.get_json()["archived_at"] is None


def test_a_decision_of_the_user_is_shown_on_every_branch_at_once(caller, project, worker):
    project.start()
    caller.write(TEXT, source="user", kind="decision")
    project.switch("main")
    digest_all(worker, caller.workspace)
    assert caller.find()


def test_what_a_turn_did_on_a_branch_is_kept_for_it(caller, project, container, worker):
    caller.hook("UserPromptSubmit", prompt="Let us begin")
    caller.write("Something of the repository")
    project.start()
    caller.hook("UserPromptSubmit", prompt="Change the form")
    caller.hook("PostToolUse", tool_response={"stdout": ""}, **COMMIT)
    caller.hook("Stop")
    flush_notes(container)
    items = caller.client.get("/v1/memories?scope=branch:feature/login", workspace=caller.workspace).get_json()["items"]
    assert [(item["kind"], item["session_id"]) for item in items] == [("activity", "s1")]
    assert "Committed" not in caller.hook("SessionStart", "s2", source="startup")
    # Capture, which reads the turn later in a worker, knows the session's branch.
    with container.workspace(caller.workspace).database.read() as db:
        assert container.workspace(caller.workspace).write_policy().follows_sessions
        assert '"s1"' in db.execute("SELECT value FROM meta WHERE key = 'session_branches'").fetchone()[0]
    assert capture_settings(worker.workspace_settings, caller.workspace).policy.follows_sessions


def test_a_critical_lesson_of_a_branch_guards_that_branch_only(caller, project):
    project.start()
    details = {"severity": "critical", "rule": "Never run make seed", "applies_when": "make seed"}
    caller.write("Never run make seed here", kind="lesson", details=details)
    command = {"tool_name": "Bash", "tool_input": {"command": "make seed"}}
    assert '"ask"' in caller.hook("PreToolUse", **command)
    project.switch("main")
    assert caller.hook("PreToolUse", **command) == ""


def test_tools_and_commands_send_their_folder(app, container, caller, project, worker):
    project.start()
    folder = project.root / "Ordner ü"
    folder.mkdir()
    with serve_app(app) as port, Client(f"http://127.0.0.1:{port}", container.token, folder=str(folder)) as tools:
        receipt = tools.call("POST", "/v1/memories", {"content": TEXT}, workspace=caller.workspace)
    assert caller.get(receipt["id"])["branch"] == FEATURE
    digest_all(worker, caller.workspace)
    headers = Headers({"X-Reverie-Workspace": caller.workspace, **caller.headers})
    server = InProcessServer(app, Operations(APIS), Sender(HOME_OWNER, headers, "r1"))
    assert server.call("POST", "/v1/recall", {"query": PROMPT})["results"]
    project.switch("main")
    assert not server.call("POST", "/v1/recall", {"query": PROMPT})["results"]


@pytest.mark.parametrize("folder", ["relative", "", "%2Fnowhere", "/dev/null", "\x7f%zz"])
def test_a_folder_without_a_repository_is_no_branch(client, folder):
    answer = client.post("/v1/memories", {"content": TEXT}, headers={FOLDER_HEADER: folder})
    assert answer.status_code == 201


def test_the_dashboards_owner_sees_memories_of_every_branch(caller, project, worker):
    project.start()
    caller.write(TEXT)
    project.switch("main")
    items = caller.client.get("/v1/memories?scope=branch:feature/login", workspace=caller.workspace).get_json()["items"]
    assert [item["content"] for item in items] == [TEXT]


class TestOff:
    """Without the setting, nothing is kept for a branch."""

    @pytest.fixture
    def home(self, home):
        return replace(home, branch_memory="off")

    def test_a_memory_is_of_the_repository_at_once(self, caller, project, container):
        project.start()
        caller.hook("UserPromptSubmit", prompt="Change the form")
        memory_id = caller.write(TEXT)
        assert caller.get(memory_id)["scope"] == {"kind": "workspace", "id": None}
        assert caller.get(memory_id)["branch"] is None
        flush_notes(container)
        with container.workspace(caller.workspace).database.read() as db:
            assert db.execute("SELECT count(*) FROM meta WHERE key LIKE '%_branches'").fetchone()[0] == 0
