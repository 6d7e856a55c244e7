"""The encoder of the configured model: whether it is compiled, compiling it, and what waits for it."""

from dataclasses import dataclass, replace
from pathlib import Path

from config.settings import Settings
from pipeline.index import encoder
from pipeline.index.encoders import follows_languages, is_encoder_compiled, usual_model
from pipeline.index.reranker import reranker_name
from pipeline.kernel.errors import EncoderUnavailable
from pipeline.kernel.records import Stage
from pipeline.kernel.store import work
from pipeline.kernel.workspace import Workspace


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
    """Compile the usual model and the reranker, or a named model, if they are not compiled; return the first folder."""
    from pipeline.index.compile import compile_encoder, compile_model

    settings.paths.ensure()
    chosen = settings if name is None else replace(settings, embedding_model=name)
    if name is None and settings.reranker:
        compile_model(reranker_name(settings.reranker), settings.paths.models)
    return compile_encoder(usual_model(chosen), settings.paths.models)


def list_default_encoders(settings: Settings) -> list[str]:
    """List the models that workspaces use with these settings."""
    return [usual_model(settings), *([encoder.MULTILINGUAL] if follows_languages(settings) else [])]


def fill_encoder_cache(model: str) -> bool:
    """Build a default encoder in the user's cache; return False if it is no default encoder or there is no cache."""
    from pipeline.index.compile import fill_cache

    return fill_cache(model)


def describe_waiting_turns(settings: Settings, count: int, speaker: str = "you") -> str | None:
    """Say how many turns capture has not read yet, and which encoder they wait for; None without any."""
    if count == 0:
        return None
    missing = next(
        (model for model in list_default_encoders(settings) if not is_encoder_compiled(settings, model)), None
    )
    waiting = f"{count} things {speaker} said are waiting" if count > 1 else f"1 thing {speaker} said is waiting"
    if missing is None:
        return f"{waiting} to be read for memories"
    return f"{waiting} for the encoder {missing}, which is compiled once; it takes some minutes"


def list_session_notes(workspace: Workspace) -> tuple[str, ...]:
    """Return what an agent must know about a workspace's state: what the user said and no memory contains yet."""
    if not workspace.exists:
        return ()
    with workspace.database.read() as db:
        count = work.count_pending(db)[Stage.CAPTURE]
    note = describe_waiting_turns(workspace.settings, count, "the user")
    return () if note is None else (f"{note}. No memory contains them yet.",)
