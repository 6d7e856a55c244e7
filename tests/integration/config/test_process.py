import subprocess
import sys

import pytest

from config.process import Role, RoleInUse

HOLD = """
import os, pathlib, sys
from config.process import Role
role = Role(pathlib.Path(sys.argv[1]), "web")
role.take()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the role until it is told to end."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_role_has_one_holder(tmp_path, holder):
    role = Role(tmp_path, "web")
    assert role.is_held()
    assert role.holder() == holder.pid
    with pytest.raises(RoleInUse) as refusal:
        role.take()
    assert refusal.value.pid == holder.pid
    assert str(holder.pid) in str(refusal.value)


def test_a_role_goes_with_its_holder_however_that_ends(tmp_path, holder):
    holder.kill()
    holder.wait(timeout=30)
    role = Role(tmp_path, "web")
    assert not role.is_held()
    assert role.holder() is None
    role.take()
    role.release()


def test_other_roles_and_other_homes_are_free(tmp_path, holder):
    (tmp_path / "other").mkdir()
    for role in (Role(tmp_path, "scheduler"), Role(tmp_path / "other", "web")):
        assert not role.is_held()
        role.take()
        assert role.is_held()
        role.release()
        assert not role.is_held()


def test_invalid_pid_file_has_no_holder(tmp_path, holder):
    for text in ("", "{", "[]", "{}"):
        (tmp_path / "web.pid").write_text(text)
        assert Role(tmp_path, "web").holder() is None
