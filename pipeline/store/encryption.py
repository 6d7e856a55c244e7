"""Encrypting the files of a data directory that are there, and the way back, file by file.

Each file is whole and has its name at any moment, plain or encrypted; which of the two is told by its first bytes.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from config.operating_system import POSIX
from config.paths import SNAPSHOTS, HomePaths, file_state, is_workspace_id
from pipeline.errors import StoreBusy
from pipeline.store import backup, driver, people_file
from pipeline.store.key import StoreKey

_BLOCK = 1 << 20


def list_folders(paths: HomePaths) -> list[str]:
    """List the folders of workspaces, also those of which only snapshots are left."""
    if not paths.workspaces.is_dir():
        return []
    return sorted(one.name for one in paths.workspaces.iterdir() if is_workspace_id(one.name) and one.is_dir())


def list_stores(paths: HomePaths, workspace: str) -> list[Path]:
    """List the files of a workspace that hold what it remembers: its store, where it has one, and every snapshot."""
    place = paths.workspace(workspace)
    stores = [place.events] if place.events.is_file() else []
    return stores + [one.file for one in backup.snapshots(place.snapshots)]


def list_people(paths: HomePaths) -> list[Path]:
    """List the file of who shares a home, where there is one, and every copy of it."""
    people = [paths.people] if paths.people.is_file() else []
    return people + [one.file for one in backup.snapshots(people_file.find_copies(paths.people))]


def list_single(paths: HomePaths) -> list[Path]:
    """List the encrypted files of a data directory that have no copies."""
    return [file for file in (paths.peers, paths.transcripts, paths.operations) if file.is_file()]


def list_all(paths: HomePaths) -> Iterator[Path]:
    """Go through every file of a data directory that is encrypted in an encrypted one."""
    yield from list_single(paths)
    yield from list_people(paths)
    for workspace in list_folders(paths):
        yield from list_stores(paths, workspace)


def find_locked(paths: HomePaths, key: StoreKey | None) -> Path | None:
    """Return a store in use that is not plain, and that a key, or no key yet, does not open either."""
    for file in list_all(paths):
        is_store = file.parent.name != SNAPSHOTS and file.stat().st_size and not driver.is_plain(file)
        if is_store and (key is None or not driver.opens(file, key)):
            return file
    return None


def convert(file: Path, draft: Path, key: StoreKey | None) -> bool:
    """Put an encrypted file, or without a key a plain one, in a file's place; tell whether it was of the other kind.

    Nobody else may have it open, which raises StoreBusy; raises StoreDamaged where it is not sound, and leaves it.
    """
    if driver.is_plain(file) is (key is None):
        if key is not None:
            # What is not plain may be no store at all.
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
            # Whoever opened it meanwhile has turned its log on again, which stands in its first page.
            if file_state(file) != before:
                raise StoreBusy(f"{file} is in use")
            backup.put_in_place(draft, file)
        finally:
            backup.remove(draft)
    return True


def erase(file: Path) -> None:
    """Delete a file and its logs, and overwrite what they contained where the system can."""
    with _erasing(file):
        backup.remove(file)


@contextmanager
def _erasing(file: Path) -> Iterator[None]:
    """Overwrite what a file and its log held, once they have no name any more; Windows replaces no open file."""
    places = [file.with_name(file.name + suffix) for suffix in ("", *backup.LOG_SUFFIXES)]
    with ExitStack() as held:
        opened = [held.enter_context(one.open("r+b")) for one in places if POSIX and one.is_file()]
        yield
        for one in opened:
            status = os.fstat(one.fileno())
            if status.st_nlink == 0:
                for start in range(0, status.st_size, _BLOCK):
                    one.write(bytes(min(_BLOCK, status.st_size - start)))
                one.flush()
                os.fsync(one.fileno())
