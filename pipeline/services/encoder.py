"""The encoder of the configured model: whether it is compiled, and compiling it."""

from dataclasses import dataclass, replace
from pathlib import Path

from config.settings import Settings
from pipeline.errors import EncoderUnavailable
from pipeline.index import encoder
from pipeline.index.encoders import usual_model


@dataclass(frozen=True, slots=True)
class EncoderStatus:
    """A model, the folder of its compiled form, and the manifest of that form if it exists."""

    model: str
    directory: Path
    compiled: encoder.Manifest | None


def get_encoder_status(settings: Settings) -> EncoderStatus:
    """Return whether the usual model is compiled, and how."""
    name = usual_model(settings)
    directory = encoder.encoder_directory(name, settings.paths.models)
    try:
        manifest = encoder.read_manifest(directory)
    except EncoderUnavailable:
        manifest = None
    return EncoderStatus(name, directory, manifest if manifest is not None and manifest.model == name else None)


def compile_model(settings: Settings, name: str | None = None) -> Path:
    """Compile the usual model or a named one, if it is not compiled yet; return its folder."""
    # Loads torch.
    from pipeline.index.compile import compile_encoder

    settings.paths.ensure()
    chosen = settings if name is None else replace(settings, embedding_model=name)
    return compile_encoder(usual_model(chosen), settings.paths.models)
