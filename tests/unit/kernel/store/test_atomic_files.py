import threading

import pytest

from pipeline.features.workspaces.usecases import Renames
from pipeline.kernel.store import atomic_files
from pipeline.kernel.store.atomic_files import replace_file


def test_replaced_file_is_private_and_complete(tmp_path):
    file = tmp_path / "names.json"
    file.write_text("old")
    replace_file(file, "new")
    assert file.read_text() == "new"
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_failed_replacement_keeps_the_old_content_and_no_draft(tmp_path, monkeypatch):
    def fail(draft, target):
        raise OSError("no room")

    file = tmp_path / "names.json"
    replace_file(file, "old")
    monkeypatch.setattr(atomic_files, "publish", fail)
    with pytest.raises(OSError, match="no room"):
        replace_file(file, "new")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_concurrent_renames_are_all_kept(tmp_path):
    file, ready = tmp_path / "renames.json", threading.Barrier(8)

    def rename(number):
        ready.wait()
        Renames(file).add(f"old-{number}", f"new-{number}")

    threads = [threading.Thread(target=rename, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [Renames(file).find(f"old-{number}") for number in range(8)] == [f"new-{number}" for number in range(8)]
