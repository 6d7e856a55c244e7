"""Compiled encoders on object storage: compiled by one machine, fetched by those that have none or cannot compile."""

import secrets
import shutil
from pathlib import Path

from pipeline.index.encoder import FORMAT, MANIFEST_FILE, encoder_directory, is_compiled
from pipeline.store.objects import ObjectStorage

FETCHING = ".fetching-"


class SharedModels:
    """The compiled encoders of a home's machines, and the folder in which this one keeps its own."""

    def __init__(self, objects: ObjectStorage, folder: Path) -> None:
        self._objects = objects
        self._folder = folder

    def send(self, model: str) -> None:
        """Send an encoder unless it is there; its manifest comes last."""
        directory = encoder_directory(model, self._folder)
        prefix = _prefix_of(directory)
        if prefix + MANIFEST_FILE not in self._objects.list(prefix):
            for file in sorted(directory.iterdir(), key=lambda file: file.name == MANIFEST_FILE):
                self._objects.put(prefix + file.name, file)

    def fetch(self, model: str) -> bool:
        """Fetch an encoder; tell whether a whole one is in its place afterwards."""
        directory = encoder_directory(model, self._folder)
        prefix = _prefix_of(directory)
        keys = list(self._objects.list(prefix))
        if prefix + MANIFEST_FILE not in keys:
            return False
        partial = self._folder / f"{FETCHING}{secrets.token_hex(4)}" / directory.name
        partial.mkdir(mode=0o700, parents=True)
        try:
            whole = all(self._objects.fetch(key, partial / key.removeprefix(prefix)) for key in keys)
            if whole and is_compiled(model, partial.parent) and not is_compiled(model, self._folder):
                # A damaged one, or of an older format, gives way.
                shutil.rmtree(directory, ignore_errors=True)
                partial.rename(directory)
        finally:
            shutil.rmtree(partial.parent, ignore_errors=True)
        return is_compiled(model, self._folder)


def _prefix_of(directory: Path) -> str:
    return f"{FORMAT}/{directory.name}/"
