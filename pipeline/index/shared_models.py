"""Compiled encoders on object storage: compiled by one machine, fetched by those without a compiler."""

import shutil
from pathlib import Path

from pipeline.index.encoder import FORMAT, MANIFEST_FILE, encoder_directory, is_compiled
from pipeline.index.shared_folders import fetch_folder, send_folder
from pipeline.store.objects import ObjectStorage


class SharedModels:
    """The compiled encoders of a data directory's machines, and this machine's folder of encoders."""

    def __init__(self, objects: ObjectStorage, folder: Path) -> None:
        self._objects = objects
        self._folder = folder

    def send(self, model: str) -> None:
        """Upload an encoder unless it exists."""
        directory = encoder_directory(model, self._folder)
        prefix = _prefix_of(directory)
        if prefix + MANIFEST_FILE not in self._objects.list(prefix):
            send_folder(self._objects, prefix, directory, MANIFEST_FILE)

    def fetch(self, model: str) -> bool:
        """Fetch an encoder; return whether a complete one is available afterwards."""
        directory = encoder_directory(model, self._folder)
        with fetch_folder(self._objects, _prefix_of(directory), directory, MANIFEST_FILE) as copy:
            if copy is not None and is_compiled(model, copy.parent) and not is_compiled(model, self._folder):
                # Replace a damaged encoder or one of an older format.
                shutil.rmtree(directory, ignore_errors=True)
                copy.rename(directory)
        return is_compiled(model, self._folder)


def _prefix_of(directory: Path) -> str:
    return f"{FORMAT}/{directory.name}/"
