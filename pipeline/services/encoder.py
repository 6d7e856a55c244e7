"""The encoder: what is compiled of the configured model, and compiling it."""

from dataclasses import dataclass
from pathlib import Path

from config.settings import Settings
from pipeline.errors import EncoderUnavailable
from pipeline.index import encoder


@dataclass(frozen=True, slots=True)
class EncoderStatus:
    """A model, the folder in which its compiled form has its place, and what that can do where it is there."""

    model: str
    directory: Path
    compiled: encoder.Manifest | None


def get_encoder_status(settings: Settings) -> EncoderStatus:
    """Tell whether the configured model is compiled, and how."""
    name = settings.embedding_model
    directory = encoder.encoder_directory(name, settings.paths.models)
    try:
        manifest = encoder.read_manifest(directory)
    except EncoderUnavailable:
        manifest = None
    return EncoderStatus(name, directory, manifest if manifest is not None and manifest.model == name else None)


def is_encoder_compiled(settings: Settings) -> bool:
    """Tell whether the configured model can be loaded as it is."""
    return encoder.is_compiled(settings.embedding_model, settings.paths.models)


def compile_model(settings: Settings, name: str | None = None) -> Path:
    """Compile a model, the configured one unless another is named, unless it is compiled; return its folder."""
    # Loads torch.
    from pipeline.index.compile import compile_encoder

    settings.paths.ensure()
    return compile_encoder(name or settings.embedding_model, settings.paths.models)
