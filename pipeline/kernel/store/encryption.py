"""Encrypt the existing files of a data directory, and decrypt them again, file by file.

At any time each file is complete and has its name, plain or encrypted; its first bytes show which.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from config.operating_system import POSIX, sync_to_disk
from config.paths import SNAPSHOTS, HomePaths, file_state, is_workspace_id
from config.steps import reached
from pipeline.kernel.errors import StoreBusy
from pipeline.kernel.store import backup, driver
from pipeline.kernel.store.key import StoreKey

_BLOCK = 1 << 20


def list_folders(paths: HomePaths) -> list[str]:
    """List the folders of workspaces, including workspaces with snapshots only."""
    if not paths.workspaces.is_dir():
        return []
    return sorted(
        folder.name for folder in paths.workspaces.iterdir() if is_workspace_id(folder.name) and folder.is_dir()
    )


def list_stores(paths: HomePaths, workspace: str) -> list[Path]:
    """List the files of a workspace that contain memories: its store, if it exists, and every snapshot."""
    files = paths.workspace(workspace)
    stores = [files.events] if files.events.is_file() else []
    return stores + [snapshot.file for snapshot in backup.snapshots(files.snapshots)]


def list_home(paths: HomePaths) -> list[Path]:
    """List the file of the data directory itself, if it exists, and every snapshot of its people."""
    home = [paths.home] if paths.home.is_file() else []
    return home + [copy.file for copy in backup.snapshots(paths.snapshots)]


def list_all(paths: HomePaths) -> Iterator[Path]:
    """List every file that is encrypted in an encrypted data directory."""
    yield from list_home(paths)
    for workspace in list_folders(paths):
        yield from list_stores(paths, workspace)


def find_unreadable_store(paths: HomePaths, key: StoreKey | None) -> Path | None:
    """Return a store that is neither plain nor readable with the key (or that is encrypted if there is no key yet)."""
    for file in list_all(paths):
        is_store = file.parent.name != SNAPSHOTS and file.stat().st_size and not driver.is_plain(file)
        if is_store and (key is None or not driver.opens(file, key)):
            return file
    return None


def convert(file: Path, draft: Path, key: StoreKey | None) -> bool:
    """Encrypt a file or, without a key, decrypt it; return whether that was necessary.

    Raises StoreBusy if another process has the file open, and StoreDamaged, without a change, if the file is damaged.
    """
    if driver.is_plain(file) is (key is None):
        if key is not None:
            # A file that is not plain may not be a store at all.
            backup.state(file)
        return False
    with backup.typed_errors(file), _erasing(file):
        backup.settle(file)
        before = file_state(file)
        backup.remove(draft)
        try:
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            with closing(driver.connect(file)) as db:
                counts = driver.export(db, draft, key)
            with closing(driver.connect(draft)) as db:
                backup.verify(db, counts)
            reached("file converted")
            # Another process that opened it in the meantime has turned on its log, which changes the first page.
            if file_state(file) != before:
                raise StoreBusy(f"{file} is in use")
            backup.replace_store_file(draft, file)
        finally:
            backup.remove(draft)
    return True


def erase(file: Path) -> None:
    """Delete a file and its logs, and overwrite their content if the system can."""
    with _erasing(file):
        backup.remove(file)


@contextmanager
def _erasing(file: Path) -> Iterator[None]:
    """Overwrite a file and its log after they are unlinked; Windows cannot replace an open file."""
    files = [file.with_name(file.name + suffix) for suffix in ("", *backup.LOG_SUFFIXES)]
    with ExitStack() as held:
        opened = [held.enter_context(path.open("r+b")) for path in files if POSIX and path.is_file()]
        yield
        # Otherwise a file of zeros could be back after a loss of power.
        sync_to_disk(file.parent)
        for handle in opened:
            status = os.fstat(handle.fileno())
            if status.st_nlink == 0:
                for start in range(0, status.st_size, _BLOCK):
                    handle.write(bytes(min(_BLOCK, status.st_size - start)))
                handle.flush()
                os.fsync(handle.fileno())
