import os

import psutil
import pytest

from config import operating_system


@pytest.fixture(params=[True, False], ids=["posix", "windows"])
def system(request, monkeypatch):
    """Either branch, as far as this machine can run it."""
    monkeypatch.setattr(operating_system, "POSIX", request.param)
    return request.param


@pytest.mark.usefixtures("system")
def test_bytes_are_read_from_their_place(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"0123456789")
    descriptor = os.open(file, operating_system.READ_NO_FOLLOW)
    assert [operating_system.read_bytes_at(descriptor, 3, at) for at in (4, 0, 8)] == [b"456", b"012", b"89"]
    os.close(descriptor)


def test_child_process_gets_a_separate_group(system):
    assert operating_system.new_process_group() == ({"process_group": 0} if system else {"creationflags": 0x200})


def test_files_and_folders_are_synced(system, tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    (tmp_path / "file").write_bytes(b"x")
    operating_system.sync_to_disk(tmp_path / "file")
    operating_system.sync_to_disk(tmp_path)
    assert len(synced) == (2 if system else 1)


def test_a_file_is_handed_over_where_files_have_owners(system, tmp_path, monkeypatch):
    given = []
    monkeypatch.setattr(os, "chown", lambda *to: given.append(to))
    file = tmp_path / "file"
    file.write_bytes(b"x")
    operating_system.copy_owner(file, file.stat())
    assert given == []
    other = os.stat_result((0o100644, 1, 1, 1, 4242, 4243, 0, 0, 0, 0))
    operating_system.copy_owner(file, other)
    assert given == ([(file, 4242, 4243)] if system else [])


def test_priority_is_lowered_with_the_available_system_call(system, monkeypatch):
    lowered = []
    monkeypatch.setattr(os, "nice", lowered.append)
    monkeypatch.setattr(psutil, "BELOW_NORMAL_PRIORITY_CLASS", 0x4000, raising=False)
    monkeypatch.setattr(psutil.Process, "nice", lambda _self, value: lowered.append(value))
    operating_system.lower_priority(7)
    assert lowered == [7 if system else 0x4000]


def test_without_forks_nothing_is_called_around_them(system, monkeypatch):
    registered = []
    monkeypatch.setattr(os, "register_at_fork", lambda **calls: registered.append(calls))
    operating_system.register_fork_hooks(print, print)
    assert len(registered) == system


def test_a_function_of_another_c_library_is_not_found(system):
    assert operating_system.find_libc_function("no_such_function") is None
    assert (operating_system.find_libc_function("getpid") is None) != system
