"""Folders on object storage: uploaded file by file with the manifest last, so a folder with a manifest is complete."""

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.store.objects import ObjectStorage

FETCHING_SUFFIX = ".fetching-"


def send_folder(objects: ObjectStorage, prefix: str, folder: Path, manifest: str) -> None:
    """Upload the files of a folder."""
    for file in sorted(folder.iterdir(), key=lambda file: file.name == manifest):
        objects.put(prefix + file.name, file)


@contextmanager
def fetch_folder(objects: ObjectStorage, prefix: str, place: Path, manifest: str) -> Iterator[Path | None]:
    """Yield a downloaded copy in a folder next to `place`, to be moved there; None if no complete one is available.

    A copy that was not moved is deleted.
    """
    keys = list(objects.list(prefix))
    if prefix + manifest not in keys:
        yield None
        return
    copy = place.parent / f"{FETCHING_SUFFIX}{secrets.token_hex(4)}" / place.name
    copy.mkdir(mode=0o700, parents=True)
    try:
        # Another process may delete the objects in the meantime.
        is_whole = all(objects.fetch(key, copy / key.removeprefix(prefix)) for key in keys)
        yield copy if is_whole else None
    finally:
        shutil.rmtree(copy.parent, ignore_errors=True)
