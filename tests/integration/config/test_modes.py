import os
import resource
import subprocess
import sys

import pytest

from config import file_modes
from config.file_modes import find_public_paths, make_private, original_umask
from config.operating_system import raise_file_limit
from config.paths import HomePaths

pytestmark = pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")


@pytest.fixture
def home(tmp_path):
    """A home of which all but one file stands open, and a link out of it."""
    (tmp_path / "outside").write_text("of somebody else's")
    (tmp_path / "outside").chmod(0o644)
    root = tmp_path / "home"
    (root / "logs").mkdir(parents=True)
    for name in ("token", "logs/reverie.log", "closed"):
        (root / name).write_text(name)
        (root / name).chmod(0o664)
    (root / "closed").chmod(0o600)
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "folder").symlink_to(tmp_path)
    for folder in (root, root / "logs"):
        folder.chmod(0o755)
    return root


def test_public_paths_are_listed_from_the_root_inward(home):
    found = [str(place.relative_to(home)) for place in find_public_paths(home)]
    assert found[0] == "."
    assert sorted(found) == [".", "logs", "logs/reverie.log", "token"]
    assert found.index("logs") < found.index("logs/reverie.log")
    assert list(find_public_paths(home / "nowhere")) == []


def test_data_directory_is_made_private_and_links_are_not_followed(home, tmp_path):
    assert HomePaths(home).close() == []
    assert list(find_public_paths(home)) == []
    assert (home / "token").stat().st_mode & 0o777 == 0o600
    assert (home / "logs").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "outside").stat().st_mode & 0o777 == 0o644
    assert (home / "token").read_text() == "token"


def test_linked_data_directory_is_made_private(home, tmp_path):
    (tmp_path / "link").symlink_to(home)
    assert HomePaths(tmp_path / "link").close() == []
    assert home.stat().st_mode & 0o777 == 0o700


def test_missing_path_counts_as_private_and_a_foreign_path_does_not(home, monkeypatch):
    assert make_private(home / "nowhere")

    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr("pathlib.Path.chmod", refuse)
    assert not make_private(home / "token")
    assert home / "token" in HomePaths(home).close()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_private_umask_remembers_the_original(tmp_path, umask):
    program = f"""
from config.file_modes import make_umask_private, original_umask
from pathlib import Path
assert original_umask() == {umask}
make_umask_private()
make_umask_private()
assert original_umask() == {umask}
Path({str(tmp_path / "file")!r}).touch()
"""
    subprocess.run([sys.executable, "-c", program], umask=umask, check=True)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600


def test_the_umask_is_only_looked_at(monkeypatch):
    monkeypatch.setattr(file_modes, "_umask", [])
    before = os.umask(0o027)
    try:
        assert original_umask() == 0o027
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)


@pytest.mark.parametrize(("soft", "hard", "expected"), [(64, 256, 256), (256, 256, 256), (64, 16_000, 8192)])
def test_as_many_files_may_be_opened_as_the_system_lets(soft, hard, expected):
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < hard:
        pytest.skip("the system lets fewer")
    program = f"""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from config.operating_system import raise_file_limit
print(raise_file_limit(), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert [int(number) for number in done.stdout.split()] == [expected, expected, hard]


def test_a_limit_that_is_high_enough_stays():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(before[1], 8192), before[1]))
    try:
        assert raise_file_limit() == min(before[1], 8192)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
