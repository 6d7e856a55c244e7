"""Memories of different tools that contradict each other: kept, shown by precedence, and settled."""

import pytest

from tests.fakes.command_line import run, run_json, serve_app
from tests.fakes.in_process import digest_all, open_worker
from tests.fakes.native_memories import make_project

CODEX = """# Task Group: shop
applies_to: cwd={project}; reuse_rule=same checkout

## User preferences

- Install packages with pnpm.

## Task 1: packages

### rollout_summary_files

- a.md (cwd={project}, updated_at=2026-03-01T10:00:00Z)
"""
CLAUDE = "---\nname: packages\ntype: feedback\ndate: 2025-06-15\n---\nInstall packages with npm.\n"


@pytest.fixture
def project(container, tmp_path, monkeypatch):
    home = tmp_path / "user"
    project = make_project(home)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(project)
    slug = "".join(sign if sign.isalnum() else "-" for sign in str(project))
    notes = home / ".claude" / "projects" / slug / "memory"
    notes.mkdir(parents=True)
    (notes / "feedback_packages.md").write_text(CLAUDE)
    (home / ".codex" / "memories").mkdir(parents=True)
    (home / ".codex" / "memories" / "MEMORY.md").write_text(CODEX.format(project=project))
    with serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        yield project


@pytest.fixture
def import_all(container, project):
    """Import the memories of all tools, and let the workers digest them."""

    def act():
        run_json("import", "memories")
        worker = open_worker(container.settings)
        try:
            (workspace,) = container.settings.paths.workspace_ids()
            digest_all(worker, workspace)
        finally:
            worker.close()

    return act


def conflicts():
    return run_json("review", "conflicts")["items"]


def test_contradicting_imports_are_both_kept_and_the_newer_leads(import_all):
    import_all()
    (conflict,) = conflicts()
    leading, other = conflict["leading"], conflict["other"]
    contents = leading["memory"]["content"], other["memory"]["content"]
    assert contents == ("Install packages with pnpm.", "Install packages with npm.")
    assert leading["origin"].startswith("codex: ~/.codex/")
    assert other["origin"].startswith("claude-code: ~/.claude/")
    assert (leading["standing"], other["standing"]) == ("unverified", "unverified")
    assert leading["memory"]["occurred_at"] > other["memory"]["occurred_at"]
    listed = run("review", "conflicts", "--list").stdout
    assert listed.index("pnpm") < listed.index("with npm")
    assert "2025-06-15" in listed


def test_a_rule_file_leads_over_newer_memories(import_all, project):
    (project / "CLAUDE.md").write_text("# Shop\n\n- Always install packages with npm.\n")
    import_all()
    (conflict,) = [conflict for conflict in conflicts() if conflict["leading"]["standing"] == "rule file"]
    assert conflict["other"]["standing"] == "unverified"
    assert conflict["leading"]["memory"]["content"] == "Always install packages with npm."
    assert "pnpm" in conflict["other"]["memory"]["content"]


def test_the_preferred_stays_the_other_is_archived_and_can_come_back(import_all):
    import_all()
    (conflict,) = conflicts()
    done = run("review", "conflicts", stdin="p\n")
    assert "1 memory archived" in done.stderr
    assert conflicts() == []
    other = conflict["other"]["memory"]["id"]
    assert run_json("get", other)["archived_at"] is not None
    import_all()
    assert run_json("get", other)["archived_at"] is not None
    (entry,) = run_json("logs", "audit", "list")["items"]
    assert (entry["memory_id"], entry["other_id"]) == (other, conflict["leading"]["memory"]["id"])
    run("logs", "audit", "undo", entry["id"])
    assert len(conflicts()) == 1


def test_the_other_may_be_kept_or_both(import_all):
    import_all()
    (conflict,) = conflicts()
    run("review", "conflicts", stdin="k\n")
    assert conflicts() == []
    import_all()
    assert conflicts() == []
    assert run_json("get", conflict["other"]["memory"]["id"])["archived_at"] is None


def test_skipped_conflicts_stay(import_all):
    import_all()
    assert "0 memories archived" in run("review", "conflicts", stdin="s\n").stderr
    assert "0 memories archived" in run("review", "conflicts", stdin="q\n").stderr
    assert len(conflicts()) == 1


def test_without_conflicts_review_reports_none(project):
    assert "No memories contradict each other" in run("review", "conflicts").stderr
