"""Files are synced before another file names them, and errors of libraries get a type."""

import os
from pathlib import Path

import pytest

from config.operating_system import make_folder, publish, sync_tree
from pipeline.index.table_storage import FolderTables
from pipeline.kernel.errors import IndexUnavailable, StoreBusy


@pytest.fixture
def synced(monkeypatch):
    """The paths that were synced, in order."""
    paths = []
    fsync = os.fsync

    def note(descriptor):
        paths.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    return paths


linux_only = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="asks the system for the name of a file")


@linux_only
def test_new_folder_is_synced_with_each_folder_above(tmp_path, synced):
    make_folder(tmp_path / "one" / "two")
    assert synced == [str(tmp_path), str(tmp_path / "one")]
    make_folder(tmp_path / "one" / "two")
    assert len(synced) == 2


@linux_only
def test_published_file_is_synced_before_and_its_folder_after(tmp_path, synced):
    draft, target = tmp_path / "draft", tmp_path / "target"
    draft.write_text("new")
    publish(draft, target)
    assert synced == [str(draft), str(tmp_path)]
    assert target.read_text() == "new"


@linux_only
def test_only_changed_files_of_a_tree_are_synced(tmp_path, synced):
    old, new = tmp_path / "old", tmp_path / "new"
    for file in (old, new):
        file.write_text("text")
    os.utime(old, ns=(0, 10**9))
    sync_tree(tmp_path, since_ns=2 * 10**9)
    assert sorted(synced) == sorted([str(new), str(tmp_path)])


class RustPanic(Exception):
    """LanceDB raises an error of this name when it reads a torn file; its class cannot be imported."""


def test_panic_of_lancedb_is_an_unavailable_index(tmp_path):
    with pytest.raises(IndexUnavailable, match="rust future panicked"), FolderTables(tmp_path).typed_errors():
        raise RustPanic("rust future panicked: unknown error")


def test_own_error_keeps_its_type(tmp_path):
    with pytest.raises(StoreBusy), FolderTables(tmp_path).typed_errors():
        raise StoreBusy("another worker writes")
