"""What a front and a worker have in common: the encoder, vector tables, and the mask of secrets."""

from pathlib import Path

from config.paths import WorkspacePaths
from config.settings import Settings
from config.threads import limit_threads
from pipeline.index.encoder import Encoder, OnnxEncoder, encoder_directory
from pipeline.index.vectors import VectorTable
from pipeline.text.redaction import redact

# What recall may take of a hook's time: the rest is for what comes before and after it.
RECALL_SHARE = 0.75


def mask(text: str) -> str:
    """Return a text without secrets."""
    return redact(text).text


def off_the_record(settings: Settings) -> Settings:
    """Return the settings of a workspace whose own file cannot be taken: it may have said to store nothing."""
    return settings.model_copy(update={"incognito": True})


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
