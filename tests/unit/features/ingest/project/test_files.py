import os

import pytest

from pipeline.features.ingest.fields import Skipped


def test_links_in_a_project_are_not_followed(project, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.py").write_text("A = 1")
    project.write({"inside/a.py": "A = 1"})
    (project.root / "folder").symlink_to(tmp_path / "outside")
    (project.root / "file.py").symlink_to(tmp_path / "outside/secret.py")
    (project.root / "again").symlink_to(project.root / "inside")
    (project.root / "inside/loop").symlink_to(project.root)
    (project.root / "nowhere.py").symlink_to(tmp_path / "nothing")
    links = dict.fromkeys(["folder", "file.py", "again", "inside/loop", "nowhere.py"], "symbolic link")
    assert project.list_skipped() == links
    assert list(project.items()) == ["inside/a.py"]


def test_dependency_and_cache_folders_are_skipped(project):
    project.write({f"{name}/a.py": "A = 1" for name in ("node_modules", "x/__pycache__", ".venv", ".tox")})
    project.write({f"{name}/a.py": "A = 1" for name in ("dist", "build", "vendor", "target", ".hidden")})
    project.write({"env/pyvenv.cfg": "", "env/a.py": "A = 1", "out/CACHEDIR.TAG": "", "out/a.rs": "pub fn a() {}"})
    unwanted = {key for key, reason in project.list_skipped().items() if reason == "folder of dependencies or caches"}
    assert unwanted == {"node_modules/", "x/__pycache__/", ".venv/", ".tox/", "env/", "out/"}
    assert set(project.items()) == {f"{name}/a.py" for name in ("dist", "build", "vendor", "target", ".hidden")}


def test_broken_repository_has_no_ignore_rules(project):
    project.write({".git": "nonsense", "a.py": "A = 1"})
    assert list(project.items()) == ["a.py"]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_unreadable_files_and_folders_are_reported(project):
    project.write({"closed/a.py": "A = 1", "shut.py": "A = 1"})
    (project.root / "closed").chmod(0)
    (project.root / "shut.py").chmod(0)
    try:
        assert project.list_skipped() == {"closed/": "cannot be read", "shut.py": "cannot be read"}
    finally:
        (project.root / "closed").chmod(0o700)


def test_fifo_is_skipped_without_waiting(project):
    project.write({"a.py": "A = 1"})
    os.mkfifo(project.root / "pipe.py")
    assert project.list_skipped() == {"pipe.py": "not a regular file"}


def test_names_that_cannot_be_stored_are_named_as_far_as_they_can(project):
    (project.root / os.fsdecode(b"caf\xe9.py")).write_text("A = 1")
    deep = "/".join(["d" * 200] * 6)
    project.write({f"{deep}/a.py": "A = 1"})
    skipped = project.list_skipped()
    assert skipped["caf?.py"] == "name is not valid UTF-8"
    assert [reason for key, reason in skipped.items() if key.startswith("d")] == ["path longer than 1024 characters"]
    assert all(len(key) <= 1025 for key in skipped)


def test_depth_needs_no_recursion(project):
    place = project.root
    for _ in range(900):
        place = place / "d"
        place.mkdir()
    assert project.read() == [Skipped(("d/" * 512)[:1024] + "/", "path longer than 1024 characters")]
