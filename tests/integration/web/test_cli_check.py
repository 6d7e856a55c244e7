"""`reverie check`: exit codes, files without a server, memories with one, and what a verification covers."""

import json

import pytest

from tests.fakes.cited_repository import Repository
from tests.fakes.command_line import run, run_json, serve_app


@pytest.fixture
def repository(tmp_path, monkeypatch):
    root = tmp_path / "shop-code"
    root.mkdir()
    repository = Repository(root)
    repository.commit(
        **{"shop/cart.py": "MAX_ITEMS = 50\n" * 3, "shop/keep.py": "", "CLAUDE.md": "See `shop/cart.py`.\n"}
    )
    monkeypatch.chdir(root)
    return repository


def test_files_are_checked_without_a_server(home, repository):
    assert "1 valid" in run("check", "--files").stdout
    deleted = repository.commit(**{"shop/cart.py": None})
    answer = run("check", "--files", code=1)
    assert answer.stdout.splitlines()[0] == f"CLAUDE.md:1: shop/cart.py: no longer true since {deleted[:10]}"
    repository.write("notes.md", "\nLimits are in `shop/keep.py`\n")
    assert "0 broken" in run("check", "notes.md").stdout
    repository.write("notes.md", "\nLimits are in `shop/limits.py`\n")
    assert "notes.md:2: shop/limits.py: not in the repository" in run("check", "notes.md", code=1).stdout


@pytest.mark.parametrize("name", ["MEMORY.md", "CLAUDE.md", "AGENTS.md"])
def test_each_kind_of_citation_in_a_rule_file_is_resolved(home, repository, name):
    repository.write("Makefile", "test:\n\tpytest\nlint:\n\truff\n")
    repository.write("shop/prices.py", "def sum_prices(items):\n    return 0\n")
    held = repository.commit()[:10]
    repository.write("CLAUDE.md", "")
    repository.write(
        name,
        f"""# Rules
- Carts are in `shop/cart.py`, kept in `shop/keep.py`.
- Prices: `sum_prices()`.
- A cart is limited by `MAX_ITEMS = 50`.
- Run `make lint` and `make test`.
- Checked in commit {held} and commit 1234567abc.
""",
    )
    repository.write("Makefile", "test:\n\tpytest\n")
    repository.write("shop/limits.py", "MAX_ITEMS = 80\n")
    changed = repository.commit(**{"shop/cart.py": None, "shop/prices.py": "def add_prices(items):\n    return 0\n"})[
        :10
    ]
    lines = run("check", "--files", code=1).stdout.splitlines()
    assert lines[:-1] == [
        f"{name}:2: shop/cart.py: no longer true since {changed}",
        f"{name}:3: sum_prices(): no longer true since {changed}, now add_prices",
        f"{name}:4: MAX_ITEMS: no longer true since {changed}, now 80",
        f"{name}:5: make lint: no longer true since {changed}",
        f"{name}:6: 1234567abc: not in the repository",
    ]
    assert "5 broken, 3 valid, 0 unknown" in lines[-1]


def test_json_lists_each_broken_citation(home, repository):
    commit = repository.commit(**{"shop/cart.py": None})
    (item,) = json.loads(run("check", "--json", "--files", code=1).stdout)["items"]
    (broken,) = item["broken"]
    assert (item["source"], broken["line"], broken["state"], broken["since"]) == ("CLAUDE.md", 1, "gone", commit)


def test_memories_are_checked_with_a_server(container, repository, monkeypatch):
    with serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        memory_id = run_json("remember", "Carts are limited by MAX_ITEMS = 50", "--kind", "decision")["id"]
        assert "1 valid" in run("check", "--memories").stdout
        commit = repository.commit(**{"shop/cart.py": "MAX_ITEMS = 80\n" * 3})
        assert (
            f"{memory_id}:1: MAX_ITEMS: no longer true since {commit[:10]}, now 80"
            in run("check", "--memories", code=1).stdout
        )


def test_verification_is_shown_with_its_checked_paths(home, repository):
    commit = repository.git("rev-parse", "HEAD")
    repository.write("AGENTS.md", f"Carts are in `shop/cart.py` (verified @{commit[:10]}).\n")
    repository.commit(**{"shop/cart.py": "MAX_ITEMS = 80\n"})
    shown = run("check", "AGENTS.md").stdout
    assert f"verified @{commit[:10]}: checked shop/cart.py, {commit[:10]}; changed since: shop/cart.py" in shown


def test_outside_of_a_checkout_and_wrong_usage(home, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "git checkout" in run("check", "--files", code=1).stderr
    assert "--memories" in run("check", "--memories", "--files", code=2).stderr


def test_a_missing_server_is_no_broken_citation(home, repository, monkeypatch):
    monkeypatch.setenv("REVERIE_PORT", "1")
    assert "No Reverie server" in run("check", "--memories", code=4).stderr


def test_memories_of_branches_that_are_gone_are_listed(container, repository, monkeypatch):
    with serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        repository.git("branch", "main")
        for branch in ("feature/login", "kept"):
            repository.git("checkout", "--quiet", "-b", branch)
            run("remember", f"Written on {branch}")
        repository.git("branch", "--quiet", "-D", "feature/login")
        [gone] = run_json("check")["gone_branches"]
        assert gone["branch"] == "feature/login"
        assert "written on the branch feature/login, which no longer exists" in run("check").stdout
