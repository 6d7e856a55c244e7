"""A project's remote is resolved as git resolves it, but for what a repository must not name."""

import subprocess

import pytest

from pipeline.features.workspaces.identify import identify

PLAIN = "git@git.example.org:acme/app.git"


@pytest.fixture(autouse=True)
def user(tmp_path, monkeypatch):
    folder = tmp_path / "user"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return folder


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "work" / "app"
    git(tmp_path, "init", "--quiet", str(folder))
    return folder


def git(folder, *words):
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def plain(tmp_path):
    folder = tmp_path / "plain"
    git(tmp_path, "init", "--quiet", str(folder))
    git(folder, "remote", "add", "origin", PLAIN)
    return identify(folder).id


# Field reports: users whose organization rewrites addresses, or keeps remotes in a file of their own.
REWRITTEN = {
    "a short name": ("gx:acme/app.git", '[url "git@git.example.org:"]\ninsteadOf = gx:\n'),
    "another protocol": (
        "https://git.example.org/acme/app",
        '[url "ssh://git@git.example.org/"]\ninsteadOf = https://git.example.org/\n',
    ),
    "the longest counts": (
        "gx:acme/app.git",
        '[url "git@other.example.org:"]\ninsteadOf = gx\n[url "git@git.example.org:"]\ninsteadOf = gx:\n',
    ),
    "the first of two": (
        "gx:app.git",
        '[url "git@git.example.org:acme/"]\ninsteadOf = gx:\n[url "git@b.example.org:acme/"]\ninsteadOf = gx:\n',
    ),
    "what is pushed to does not count": (
        PLAIN,
        '[url "git@other.example.org:"]\npushInsteadOf = git@git.example.org:\n',
    ),
}


@pytest.mark.parametrize("place", ["user", "xdg", "repository", "included by the user", "included within"])
@pytest.mark.parametrize("kind", REWRITTEN)
def test_an_address_is_rewritten_as_git_rewrites_it(tmp_path, repository, user, kind, place):
    address, rules = REWRITTEN[kind]
    git(repository, "remote", "add", "origin", address)
    match place:
        case "user":
            (user / ".gitconfig").write_text(rules)
        case "xdg":
            (user / ".config" / "git").mkdir(parents=True)
            (user / ".config" / "git" / "config").write_text(rules)
        case "included by the user":
            (user / "rules").write_text(rules)
            (user / ".gitconfig").write_text("[include]\npath = ~/rules\n")
        case "included within":
            (repository / ".gitconfig").write_text(rules)
            git(repository, "config", "include.path", "../.gitconfig")
        case _:
            with (repository / ".git" / "config").open("a") as config:
                config.write(rules)
    resolved = git(repository, "remote", "get-url", "origin")
    assert "acme/app" in resolved
    assert identify(repository).id == plain(tmp_path)


@pytest.mark.parametrize(
    ("condition", "is_met"),
    [
        ("gitdir:{work}/", True),
        ("gitdir:{work}/app/.git", True),
        ("gitdir:work/", True),
        ("gitdir:app/.git", True),
        ("gitdir/i:WORK/", True),
        ("gitdir:WORK/", False),
        ("gitdir:{work}/*/.git", True),
        ("gitdir:{work}/*", False),
        ("gitdir:elsewhere/", False),
    ],
)
def test_a_condition_on_the_place_counts_as_it_does_for_git(tmp_path, repository, user, condition, is_met):
    git(repository, "remote", "add", "origin", "gx:acme/app.git")
    (user / "rules").write_text('[url "git@git.example.org:"]\ninsteadOf = gx:\n')
    (user / ".gitconfig").write_text(f'[includeIf "{condition.format(work=tmp_path / "work")}"]\npath = rules\n')
    assert (git(repository, "remote", "get-url", "origin") == PLAIN) is is_met
    assert (identify(repository).id == plain(tmp_path)) is is_met


def test_remote_in_an_included_git_config_of_the_repository_is_found(tmp_path, repository):
    (repository / ".git" / "remotes.inc").write_text(f'[remote "origin"]\nurl = {PLAIN}\n')
    git(repository, "config", "include.path", "remotes.inc")
    assert git(repository, "remote", "get-url", "origin") == PLAIN
    assert identify(repository).id == plain(tmp_path)


@pytest.mark.parametrize("way", ["a path", "a link", "a condition"])
def test_no_file_outside_a_repository_is_read(tmp_path, repository, way):
    outside = tmp_path / "outside"
    outside.write_text(f'[remote "origin"]\nurl = {PLAIN}\n')
    if way == "a link":
        (repository / "inside").symlink_to(outside)
    name = {"a path": f"{outside}", "a link": "../inside", "a condition": f"{outside}"}[way]
    section = f"includeIf.gitdir:{repository}/.path" if way == "a condition" else "include.path"
    git(repository, "config", section, name)
    assert identify(repository).rule == "git"
    # The way out: a file that the owner writes.
    (repository / ".reverie.toml").write_text('workspace = "app"\n')
    assert identify(repository, is_agreed=lambda _file, _workspace: True).id == "app"


def test_files_that_include_each_other_end(repository, user):
    git(repository, "remote", "add", "origin", PLAIN)
    loop = "[include]\npath = loop\n" * 50
    (repository / ".git" / "loop").write_text(loop)
    git(repository, "config", "include.path", "loop")
    (user / "loop").write_text(loop)
    (user / ".gitconfig").write_text("[include]\npath = loop\n")
    assert identify(repository).id
