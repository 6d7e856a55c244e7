"""What a front and a worker have in common: databases, the encoder, vector tables, and the mask of secrets."""

import threading
from pathlib import Path

from config.files import file_identity
from config.paths import WorkspacePaths
from config.settings import Settings
from config.threads import limit_threads
from pipeline.errors import NotFound
from pipeline.index.encoder import Encoder, OnnxEncoder, encoder_directory
from pipeline.index.vectors import VectorTable
from pipeline.store.database import Database, WriterProfile
from pipeline.text.redaction import redact

# What recall may take of a hook's time: the rest is for what comes before and after it.
RECALL_SHARE = 0.75


def mask(text: str) -> str:
    """Return a text without secrets."""
    return redact(text).text


def off_the_record(settings: Settings) -> Settings:
    """Return the settings of a workspace whose own file cannot be taken: it may have said to store nothing."""
    return settings.model_copy(update={"incognito": True})


class Databases:
    """Open each workspace's database once, and again when its file was replaced."""

    def __init__(self, settings: Settings, profile: WriterProfile) -> None:
        self._paths = settings.paths
        self._profile = profile
        self._lock = threading.Lock()
        self._open: dict[str, tuple[Database, tuple[int, int]]] = {}

    def get(self, workspace_id: str, *, create: bool = False) -> Database:
        """Return a workspace's database; raise NotFound when it does not exist and is not to be made."""
        file = self._paths.workspace(workspace_id).events
        known = self._open.get(workspace_id)
        if known is not None and known[1] == file_identity(file):
            return known[0]
        with self._lock:
            known = self._open.get(workspace_id)
            if known is not None and known[1] == file_identity(file):
                return known[0]
            database = Database(file, self._profile, create=create)
            identity = file_identity(file)
            if identity is None:
                raise NotFound("no such workspace")
            self._open[workspace_id] = (database, identity)
            return database

    def close(self) -> None:
        """Close every database."""
        with self._lock:
            for database, _ in self._open.values():
                database.close()
            self._open.clear()


def load_encoder(settings: Settings) -> Encoder:
    """Load the compiled encoder of the settings; raise EncoderUnavailable when there is none."""
    directory = encoder_directory(settings.embedding_model, settings.paths.models)
    encoder = OnnxEncoder.load(directory, threads=settings.encoder_threads)
    limit_threads(settings.encoder_threads)
    return encoder


def vector_table(paths: WorkspacePaths, encoder: Encoder) -> VectorTable:
    """Return the table of an encoder's vectors in a workspace."""
    return VectorTable(paths.vectors, encoder_directory(encoder.name, Path()).name, encoder.dimension)


def recall_budget_ms(settings: Settings) -> int:
    """Return the milliseconds that recall may take, for a hook to answer in its own."""
    return max(1, int(settings.hook_budget_ms * RECALL_SHARE))
