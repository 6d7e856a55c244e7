"""The encoder: what is compiled of the configured model, compiling it, and loading it for queries."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from config.paths import WorkspacePaths
from config.process import limit_threads
from config.settings import Settings
from pipeline.errors import EncoderUnavailable
from pipeline.index import encoder
from pipeline.index.vectors import VectorTable

ENCODER_CHECK_S = 0.5


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


def compile_model_apart(settings: Settings) -> None:
    """Compile the configured model, unless it is compiled, in a process that ends."""
    from pipeline.index.compile import compile_apart

    compile_apart(settings.embedding_model, settings.paths.models)


def load_encoder(settings: Settings) -> encoder.Encoder:
    """Load the compiled encoder of the settings; raise EncoderUnavailable when there is none."""
    directory = encoder.encoder_directory(settings.embedding_model, settings.paths.models)
    loaded = encoder.OnnxEncoder.load(directory, threads=settings.encoder_threads)
    limit_threads(settings.encoder_threads)
    return loaded


def vector_table(paths: WorkspacePaths, loaded: encoder.Encoder) -> VectorTable:
    """Return the table of an encoder's vectors in a workspace."""
    return VectorTable(paths.vectors, encoder.encoder_directory(loaded.name, Path()).name, loaded.dimension)


class QueryEncoder:
    """Hold the encoder of queries: absent until a worker has compiled it, then loaded beside the traffic."""

    def __init__(self, settings: Settings, on_error: Callable[[str], None]) -> None:
        self._settings = settings
        self._on_error = on_error
        self._encoder: encoder.Encoder | None = None
        self._stop = threading.Event()

    def get(self) -> encoder.Encoder:
        """Return the encoder or raise EncoderUnavailable at once."""
        if self._encoder is None:
            raise EncoderUnavailable("the encoder is not loaded yet")
        return self._encoder

    @property
    def state(self) -> str:
        """Return `ready` or `loading`."""
        return "loading" if self._encoder is None else "ready"

    def stop(self) -> None:
        """End the waiting."""
        self._stop.set()

    def load(self) -> None:
        """Wait until a worker has compiled the model, or until stopped, and load it."""
        failed = ""
        while self._encoder is None and not self._stop.is_set():
            try:
                loaded = load_encoder(self._settings)
                loaded.encode_query("warm up")
                self._encoder = loaded
            except EncoderUnavailable as error:
                if is_encoder_compiled(self._settings) and str(error) != failed:
                    failed = str(error)
                    self._on_error(failed)
                self._stop.wait(ENCODER_CHECK_S)
