"""Lexical segments on object storage: uploaded once by the process that built them, and fetched by readers.

The store names the current segment only after the upload, so interrupted uploads leave only unnamed objects. Fetched
segments are in a folder of the machine, which may be deleted at any time.
"""

import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ulid import ULID

from pipeline.errors import IndexUnavailable
from pipeline.index.segment import MANIFEST, NAME_PREFIX, Segment, load_segment
from pipeline.index.shared_folders import fetch_folder, send_folder
from pipeline.store.objects import ObjectStorage

# A process that read a segment's name has started to fetch it within this time.
GRACE = timedelta(minutes=15)


class SharedSegments:
    """The segments of a workspace in a separate part of object storage, and a folder for copies."""

    def __init__(self, objects: ObjectStorage, folder: Path) -> None:
        self._objects = objects
        self._folder = folder

    def send(self, name: str) -> None:
        """Upload a segment that was built in the folder."""
        send_folder(self._objects, f"{name}/", self._folder / name, MANIFEST)

    def load(self, name: str) -> Segment:
        """Load a segment, fetching it if there is no complete copy; raise IndexUnavailable if it does not exist."""
        try:
            return load_segment(self._folder, name)
        except IndexUnavailable:
            # Not fetched yet, or the copy is damaged.
            shutil.rmtree(self._folder / name, ignore_errors=True)
        self._fetch(name)
        return load_segment(self._folder, name)

    def remove_others(self, keep: str, now: datetime, *, at_once: bool) -> None:
        """Delete the segments before another one; those that a process may be fetching only with `at_once`."""
        outlived = now if at_once else now - GRACE
        self._objects.delete(
            key
            for key in self._objects.list()
            if (name := key.partition("/")[0]) < keep and _built_at(name) <= outlived.timestamp()
        )

    def _fetch(self, name: str) -> None:
        with fetch_folder(self._objects, f"{name}/", self._folder / name, MANIFEST) as copy:
            if copy is None:
                raise IndexUnavailable(f"lexical segment {name} is not at {self._objects.url}", part=name)
            self._take(copy, name)

    def _take(self, copy: Path, name: str) -> None:
        try:
            os.rename(copy, self._folder / name)  # noqa: PTH104 - fails if another process was first
        except OSError:
            if not (self._folder / name / MANIFEST).exists():
                raise
        # Only older copies: a worker of this machine may be building a newer one here.
        for entry in self._folder.iterdir():
            if entry.is_dir() and entry.name.startswith(NAME_PREFIX) and entry.name < name:
                shutil.rmtree(entry, ignore_errors=True)


def _built_at(name: str) -> float:
    try:
        return float(ULID.from_str(name.removeprefix(NAME_PREFIX).upper()).timestamp)
    except ValueError:
        return datetime.now(UTC).timestamp()
