"""A memory that is written on another git branch than the default one carries a tag with the branch's name."""

import pytest

from pipeline.features.workspaces.identify import identify
from tests.fakes.cited_repository import Repository
from tests.fakes.in_process import digest_all, flush_notes
from tests.fakes.statements import MarkedStatements
from web.http.contract import FOLDER_HEADER

TEXT = "The login form posts to the endpoint sessions"
COMMIT = {"tool_name": "Bash", "tool_input": {"command": "git commit -m 'Post the login form to sessions'"}}
FEATURE = "feature/login"


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    repository = Repository(root)
    repository.git("symbolic-ref", "HEAD", "refs/heads/main")
    repository.commit(**{"app.txt": "one\n"})
    return repository


class Caller:
    """A client that works in the folder of a repository."""

    def __init__(self, client, folder):
        self.client, self.workspace, self.folder = client, identify(folder).id, folder

    def write(self, content, **fields):
        body = {"content": content, "source": "agent", "importance": 0.8, **fields}
        headers = {FOLDER_HEADER: str(self.folder)}
        return self.client.post("/v1/memories", body, workspace=self.workspace, headers=headers).get_json()["id"]

    def list_tags(self):
        items = self.client.get("/v1/memories", workspace=self.workspace).get_json()["items"]
        return {item["content"]: item["tags"] for item in items}

    def hook(self, name, **fields):
        body = {"hook_event_name": name, "session_id": "s1", "cwd": str(self.folder), **fields}
        self.client.post("/hooks/claude-code", body)


@pytest.fixture
def caller(client, project):
    return Caller(client, project.root)


def test_a_write_on_a_side_branch_is_tagged(caller, project):
    caller.write("The default branch needs no tag")
    project.git("checkout", "--quiet", "-b", FEATURE)
    caller.write(TEXT, tags=["login"])
    assert caller.list_tags() == {
        "The default branch needs no tag": [],
        TEXT: ["login", f"branch:{FEATURE}"],
    }
    listed = caller.client.get(f"/v1/memories?tag=branch:{FEATURE}", workspace=caller.workspace).get_json()["items"]
    assert [item["content"] for item in listed] == [TEXT]
    # It is shown on every branch.
    project.git("checkout", "--quiet", "main")
    body = {"query": "Which endpoint does the login form post to?"}
    found = caller.client.post("/v1/recall", body, workspace=caller.workspace).get_json()["results"]
    assert found[0]["content"] == TEXT


def test_hooks_and_capture_tag_by_the_folder_of_the_session(caller, project, container, worker):
    worker._classifier = lambda *_given: MarkedStatements()
    caller.hook("UserPromptSubmit", prompt="Let us begin")
    project.git("checkout", "--quiet", "-b", FEATURE)
    caller.hook("UserPromptSubmit", prompt="remember: the login form has a captcha")
    caller.hook("PostToolUse", tool_response={"stdout": ""}, **COMMIT)
    caller.hook("Stop")
    flush_notes(container)
    said = [{"role": "user", "content": "Rule: use ruff instead of black in this repository."}]
    caller.client.post("/v1/turns", {"session_id": "s1", "messages": said, "cwd": str(caller.folder)})
    digest_all(worker, caller.workspace)
    tags = caller.list_tags()
    assert any("captcha" in content for content in tags)
    assert any("ruff" in content for content in tags)
    assert all(f"branch:{FEATURE}" in own for own in tags.values())


def test_memory_about_the_person_has_no_branch_tag(caller, project, container):
    project.git("checkout", "--quiet", "-b", FEATURE)
    caller.write("My name is Jo", scope={"kind": "user"})
    assert "branch:" not in str(caller.client.get("/v1/memories?scope=user", workspace="~me").get_data(as_text=True))


def test_a_name_that_no_tag_can_contain_is_shortened(caller, project):
    project.git("checkout", "--quiet", "-b", f"größe-{'x' * 60}")
    caller.write(TEXT)
    assert caller.list_tags() == {TEXT: [f"branch:gr-e-{'x' * 38}"]}


def test_a_folder_without_a_repository_has_no_branch(client, tmp_path):
    for folder in (str(tmp_path), "relative", "\0"):
        answer = client.post("/v1/memories", {"content": f"{TEXT} {len(folder)}"}, headers={FOLDER_HEADER: folder})
        assert answer.status_code == 201
    assert "branch:" not in client.get("/v1/memories").get_data(as_text=True)
