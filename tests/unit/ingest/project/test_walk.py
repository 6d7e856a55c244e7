import os

import pytest

from pipeline.ingest.items import Skipped
from pipeline.ingest.project.walk import File, walk


def test_links_are_not_followed_wherever_they_lead(project, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.py").write_text("A = 1")
    project.write({"inside/a.py": "A = 1"})
    (project.root / "folder").symlink_to(tmp_path / "outside")
    (project.root / "file.py").symlink_to(tmp_path / "outside/secret.py")
    (project.root / "again").symlink_to(project.root / "inside")
    (project.root / "inside/loop").symlink_to(project.root)
    (project.root / "nowhere.py").symlink_to(tmp_path / "nothing")
    (project.root / ".gitignore").symlink_to(tmp_path / "outside/secret.py")
    links = dict.fromkeys(["folder", "file.py", "again", "inside/loop", "nowhere.py", ".gitignore"], "symbolic link")
    assert project.skipped() == links
    assert list(project.items()) == ["inside/a.py"]


def test_folders_that_nobody_wants_are_left_out_unasked(project):
    project.write({f"{name}/a.py": "A = 1" for name in ("node_modules", "x/__pycache__", ".venv", ".tox")})
    project.write({f"{name}/a.py": "A = 1" for name in ("dist", "build", "vendor", "target", ".hidden")})
    project.write({"env/pyvenv.cfg": "", "env/a.py": "A = 1", "out/CACHEDIR.TAG": "", "out/a.rs": "pub fn a() {}"})
    project.write(
        {"go/vendor/modules.txt": "", "go/vendor/a.go": "package a", "kept/modules.txt": "", "kept/a.py": "A = 1"}
    )
    unwanted = {key for key, reason in project.skipped().items() if reason == "folder of dependencies or caches"}
    assert unwanted == {"node_modules/", "x/__pycache__/", ".venv/", ".tox/", "env/", "out/", "go/vendor/"}
    assert set(project.items()) == {f"{name}/a.py" for name in ("dist", "build", "vendor", "target", ".hidden", "kept")}


def test_what_is_ignored_is_one_entry_however_much_it_holds(project):
    project.write({".git/HEAD": "ref: refs/heads/main\n", ".gitignore": "logs/\n*.tmp.py\n"})
    project.write({"logs/a.py": "A = 1", "logs/b/c.py": "A = 1", "a.tmp.py": "A = 1", "a.py": "A = 1"})
    ignored = {key for key, reason in project.skipped().items() if reason == "ignored by git"}
    assert ignored == {"logs/", "a.tmp.py"}
    assert list(project.items()) == ["a.py"]


def test_rules_hold_without_a_repository_too(project):
    project.write({".gitignore": "a.py\n", "a.py": "A = 1", "b/.gitignore": "!a.py\n", "b/a.py": "A = 1"})
    assert list(project.items()) == ["b/a.py"]


def test_a_repository_within_a_repository_is_not_its_own(project):
    project.write({".git/HEAD": "x", "a.py": "A = 1", "sub/.git": "gitdir: ../x", "sub/b.py": "A = 1"})
    assert project.skipped() == {"sub/": "another repository"}


def test_a_folder_of_repositories_is_read_by_the_rules_of_each(project):
    for name in ("one", "two"):
        project.write(
            {f"{name}/.git/objects/a": "", f"{name}/.git/HEAD": "ref: refs/heads/main\n", f"{name}/a.py": "A = 1"}
        )
    project.write({".gitignore": "a.py\n", "one/.gitignore": "b.py\n", "one/b.py": "A = 1"})
    project.write({"two/.git/info/exclude": "c.py\n", "two/c.py": "A = 1", "two/b.py": "A = 1"})
    assert set(project.items()) == {"one/a.py", "two/a.py", "two/b.py"}


def test_a_worktree_follows_the_rules_of_its_repository(project, tmp_path):
    (tmp_path / "main.git/info").mkdir(parents=True)
    (tmp_path / "main.git/info/exclude").write_text("b.py\n")
    (tmp_path / "main.git/worktrees/project").mkdir(parents=True)
    (tmp_path / "main.git/worktrees/project/commondir").write_text("../..\n")
    project.write({".git": f"gitdir: {tmp_path}/main.git/worktrees/project\n", "a.py": "A = 1", "b.py": "A = 1"})
    assert list(project.items()) == ["a.py"]


def test_a_broken_repository_has_no_rules_of_its_own(project):
    project.write({".git": "nonsense", "a.py": "A = 1"})
    assert list(project.items()) == ["a.py"]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_what_may_not_be_looked_at_is_named(project):
    project.write({"closed/a.py": "A = 1", "shut.py": "A = 1"})
    (project.root / "closed").chmod(0)
    (project.root / "shut.py").chmod(0)
    try:
        assert project.skipped() == {"closed/": "cannot be read", "shut.py": "cannot be read"}
    finally:
        (project.root / "closed").chmod(0o700)


def test_a_folder_that_vanishes_while_walking_is_named(project):
    project.write({"a.py": "A = 1", "b/c.py": "A = 1"})
    walking = walk(project.root.resolve())
    assert isinstance(next(walking), File)
    (project.root / "b/c.py").unlink()
    (project.root / "b").rmdir()
    assert list(walking) == [Skipped("b/", "cannot be read")]


def test_what_is_no_file_is_not_waited_for(project):
    project.write({"a.py": "A = 1"})
    os.mkfifo(project.root / "pipe.py")
    assert project.skipped() == {"pipe.py": "not a regular file"}


def test_names_that_cannot_be_stored_are_named_as_far_as_they_can(project):
    (project.root / os.fsdecode(b"caf\xe9.py")).write_text("A = 1")
    deep = "/".join(["d" * 200] * 6)
    project.write({f"{deep}/a.py": "A = 1"})
    skipped = project.skipped()
    assert skipped["caf?.py"] == "name is not valid UTF-8"
    assert [reason for key, reason in skipped.items() if key.startswith("d")] == ["path longer than 1024 characters"]
    assert all(len(key) <= 1025 for key in skipped)


def test_depth_needs_no_recursion(project):
    place = project.root
    for _ in range(900):
        place = place / "d"
        place.mkdir()
    assert project.read() == [Skipped(("d/" * 512)[:1024] + "/", "path longer than 1024 characters")]
