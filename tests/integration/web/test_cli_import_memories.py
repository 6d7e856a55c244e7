"""`reverie import memories` against a server: every tool's memories, each in the workspace of its project."""

import json
import os
import re

import pytest

from tests.fakes.client import CheckedClient
from tests.fakes.command_line import run, run_json, serve_app
from tests.fakes.native_memories import place_memories
from web.http.app import create_app

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
NOTE = """---
name: package-manager
description: How packages are installed
type: feedback
---
Install packages with npm, never by hand.

**Why:** the lock file must stay in sync.
"""


@pytest.fixture
def server(container, monkeypatch):
    with serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        yield


@pytest.fixture
def user_home(tmp_path, monkeypatch):
    """The home of a user with one Git project, in which the commands run."""
    folder = tmp_path / "user"
    (folder / "shop" / ".git").mkdir(parents=True)
    (folder / "shop" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "shop" / ".git" / "objects").mkdir()
    (folder / "shop" / ".git" / "refs").mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(folder / "shop")
    return folder


@pytest.fixture
def claude_memory(user_home):
    folder = user_home / ".claude" / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(user_home / "shop")) / "memory"
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text("- [Package manager](package_manager.md) — How packages are installed\n")
    (folder / "feedback_npm.md").write_text(NOTE)
    (folder / "user_role.md").write_text(
        "---\nname: role\ntype: user\n---\nThe user maintains the tea shop's checkout.\n"
    )
    os.utime(folder / "feedback_npm.md", (1750000000, 1750000000))
    return folder


def tools(answer):
    return {tool["tool"]: tool for tool in answer["tools"]}


def listed(workspace=None):
    named = () if workspace is None else ("-w", workspace)
    return {memory["content"]: memory for memory in run_json(*named, "list")["items"]}


def test_memory_import_finds_nothing_in_an_empty_home_directory(server, user_home, container):
    assert run_json("import", "memories") == {"dry_run": False, "tools": []}
    assert "No memories of other tools" in run("import", "memories").stderr
    assert container.settings.paths.workspace_ids() == []


def test_claude_memories_keep_origin_date_and_scope(server, user_home, claude_memory):
    answer = tools(run_json("import", "memories"))["claude-code"]
    assert answer["items"] == {"created": 2}
    project = next(content for content in listed() if content.startswith("Install packages with npm"))
    memory = listed()[project]
    assert (memory["source"], memory["trust"]) == ("import", "evidence")
    assert memory["occurred_at"].startswith("2025-06-15")
    assert memory["metadata"]["tool"] == "claude-code"
    assert memory["metadata"]["file"].startswith("~/.claude/projects/")
    assert memory["metadata"]["date_estimated"] is True
    assert list(listed("me")) == ["The user maintains the tea shop's checkout."]
    assert tools(run_json("import", "memories"))["claude-code"]["items"] == {"unchanged": 2}


def test_a_dry_run_writes_nothing(server, user_home, claude_memory, container):
    answer = run_json("import", "memories", "--dry-run")
    assert tools(answer)["claude-code"]["items"] == {"created": 2}
    assert container.settings.paths.workspace_ids() == []
    assert "nothing was written" in run("import", "memories", "--dry-run").stdout


def test_a_deletion_in_the_tool_archives_and_a_deletion_here_stays(server, user_home, claude_memory):
    run_json("import", "memories")
    (claude_memory / "user_role.md").unlink()
    answer = tools(run_json("import", "memories"))["claude-code"]
    assert (answer["items"], answer["memories"]["archived"]) == ({"unchanged": 1, "forgotten": 1}, 1)
    assert listed("me") == {}
    (memory,) = listed().values()
    run("forget", memory["id"])
    (claude_memory / "feedback_npm.md").write_text(f"{NOTE}\n")
    run_json("import", "memories")
    assert listed() == {}


def test_only_the_named_tools_are_read(server, user_home, claude_memory):
    assert run_json("import", "memories", "--from", "codex")["tools"] == []
    assert "claude-code" in run("import", "memories", "--from", "cluade", code=2).stderr


CODEX = """# Task Group: shop / checkout
scope: the checkout of the shop
applies_to: cwd={folder}; reuse_rule=same checkout

## Task 1: change the till, success

### rollout_summary_files

- rollout_summaries/a.md (cwd={folder}, updated_at=2026-03-01T10:00:00Z, thread_id=1)

### keywords

- till, checkout

## User preferences

- Install packages with pnpm. [Task 1]

# Task Group: general
applies_to: cwd=any workflow

## Reusable knowledge

- Prefer small commits.
"""


def test_codex_groups_go_to_their_projects(server, user_home):
    folder = user_home / ".codex" / "memories"
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text(CODEX.format(folder=user_home / "shop") + CODEX.format(folder="/gone/away"))
    answer = tools(run_json("import", "memories"))["codex"]
    assert answer["left_out"] == {"its project's folder was not found on this machine": 1}
    (memory,) = listed().values()
    assert memory["content"] == "Install packages with pnpm."
    assert memory["occurred_at"].startswith("2026-03-01")
    assert "date_estimated" not in memory["metadata"]
    assert list(listed("me")) == ["Prefer small commits."]


def test_the_added_memories_of_gemini_are_about_the_user(server, user_home):
    (user_home / ".gemini").mkdir()
    (user_home / ".gemini" / "GEMINI.md").write_text(
        f"# Rules\n\nNever push.\n\n## Gemini Added Memories\n- The user drinks tea.\n- The token is {SECRET}\n"
    )
    answer = tools(run_json("import", "memories", "--from", "gemini"))["gemini"]
    assert answer["memories"] == {"created": 2}
    contents = list(listed("me"))
    assert "The user drinks tea." in contents
    assert SECRET not in json.dumps(contents)
    assert listed() == {}


def test_a_person_finds_rule_files_and_agents_are_not_shown_them(server, user_home, container):
    statement = "Install packages of the checkout with pnpm"
    run_json("remember", statement)
    client = CheckedClient(create_app(container), container.token)

    def show(session, event, **fields):
        body = {"hook_event_name": event, "session_id": session, "cwd": str(user_home / "shop"), **fields}
        return client.post("/hooks/claude-code", body).get_data(as_text=True)

    assert "pnpm" in show("s1", "UserPromptSubmit", prompt=f"{statement}, please")
    (user_home / "shop" / "CLAUDE.md").write_text(f"# Shop\n\n- {statement}.\n")
    assert tools(run_json("import", "memories"))["rules"]["items"] == {"created": 1}
    assert f"{statement}." in {result["content"] for result in run_json("recall", statement)["results"]}
    assert "pnpm" not in show("s2", "SessionStart", source="startup")
    assert "pnpm" not in show("s2", "UserPromptSubmit", prompt=f"{statement}, please")


def test_memory_import_summarizes_every_tool_and_its_omissions(server, user_home):
    for tool in ("engram", "claude-mem"):
        place_memories(tool, user_home, user_home / "shop")
    answer = tools(run_json("import", "memories"))
    assert set(answer) == {"engram", "claude-mem"}
    assert answer["engram"]["left_out"] == {"deleted in the tool": 1}
    lines = run("import", "memories").stdout
    assert "engram" in lines
    assert "left out: claude-mem: 1 item: its project's folder was not found on this machine" in lines


def test_personal_memories_are_left_out_if_personal_memory_is_off(server, user_home, monkeypatch):
    place_memories("gemini", user_home, user_home / "shop")
    run("config", "set", "personal", "off")
    answer = tools(run_json("import", "memories"))["gemini"]
    assert answer["left_out"] == {"personal memory is turned off": 1}
