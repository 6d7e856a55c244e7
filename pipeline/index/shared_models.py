"""Compiled encoders on object storage: compiled by one machine, fetched by those that have none or cannot compile."""

import shutil
from pathlib import Path

from pipeline.index.encoder import FORMAT, MANIFEST_FILE, encoder_directory, is_compiled
from pipeline.index.shared_folders import fetch_folder, send_folder
from pipeline.store.objects import ObjectStorage


class SharedModels:
    """The compiled encoders of a data directory's machines, and the folder in which this one keeps its own."""

    def __init__(self, objects: ObjectStorage, folder: Path) -> None:
        self._objects = objects
        self._folder = folder

    def send(self, model: str) -> None:
        """Send an encoder unless it is there."""
        directory = encoder_directory(model, self._folder)
        prefix = _prefix_of(directory)
        if prefix + MANIFEST_FILE not in self._objects.list(prefix):
            send_folder(self._objects, prefix, directory, MANIFEST_FILE)

    def fetch(self, model: str) -> bool:
        """Fetch an encoder; tell whether a whole one is in its place afterwards."""
        directory = encoder_directory(model, self._folder)
        with fetch_folder(self._objects, _prefix_of(directory), directory, MANIFEST_FILE) as copy:
            if copy is not None and is_compiled(model, copy.parent) and not is_compiled(model, self._folder):
                # A damaged one, or of an older format, gives way.
                shutil.rmtree(directory, ignore_errors=True)
                copy.rename(directory)
        return is_compiled(model, self._folder)


def _prefix_of(directory: Path) -> str:
    return f"{FORMAT}/{directory.name}/"
