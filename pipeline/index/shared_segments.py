"""Lexical segments on object storage: each sent once and whole, by who built it, and fetched by who is to read it.

The store names the current one, and only one that was sent; so whatever is killed in between leaves objects that nobody
names. What was fetched lies in a folder of the machine, which may be deleted at any time.
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

# Who was told a segment's name has begun to fetch it by then.
GRACE = timedelta(minutes=15)


class SharedSegments:
    """The segments of a workspace in a part of object storage of their own, and a folder for copies."""

    def __init__(self, objects: ObjectStorage, folder: Path) -> None:
        self._objects = objects
        self._folder = folder

    def send(self, name: str) -> None:
        """Send a segment that was built in the folder."""
        send_folder(self._objects, f"{name}/", self._folder / name, MANIFEST)

    def load(self, name: str) -> Segment:
        """Load a segment, fetched where no whole copy is there; raise IndexUnavailable for one that is not there."""
        try:
            return load_segment(self._folder, name)
        except IndexUnavailable:
            # Not fetched yet, or the copy is damaged.
            shutil.rmtree(self._folder / name, ignore_errors=True)
        self._fetch(name)
        return load_segment(self._folder, name)

    def remove_others(self, keep: str, now: datetime, *, at_once: bool) -> None:
        """Delete the segments before one, those that somebody may be fetching only if that is asked for."""
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
            os.rename(copy, self._folder / name)  # noqa: PTH104 - refused where another process was first
        except OSError:
            if not (self._folder / name / MANIFEST).exists():
                raise
        # Older copies only: a worker of this machine may be building a newer one here.
        for entry in self._folder.iterdir():
            if entry.is_dir() and entry.name.startswith(NAME_PREFIX) and entry.name < name:
                shutil.rmtree(entry, ignore_errors=True)


def _built_at(name: str) -> float:
    try:
        return float(ULID.from_str(name.removeprefix(NAME_PREFIX).upper()).timestamp)
    except ValueError:
        return datetime.now(UTC).timestamp()
