"""The user's cache of default encoders: they are built once on a machine, and shared by all data directories.

It contains no text of a user. A folder is used only if no other user can change its files.
"""

import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from config.file_modes import OTHERS
from config.operating_system import is_protected
from config.paths import find_encoder_cache, list_encoder_caches
from pipeline.index.encoder import (
    ENGLISH,
    FORMAT,
    MANIFEST_FILE,
    MULTILINGUAL,
    background_messages,
    encoder_directory,
    is_compiled,
)
from pipeline.index.language_projection import SENTENCES
from pipeline.index.packaged_weights import E5, MINILM, PackagedModel

_WEIGHTS: Final[Mapping[str, PackagedModel]] = {
    ENGLISH: MINILM,
    f"sentence-transformers/{ENGLISH}": MINILM,
    MULTILINGUAL: E5,
}


def _folder_in(cache: Path, model: str) -> Path:
    """Return the folder of a default encoder in a cache of encoders."""
    # All that the files of an encoder are made from.
    sources = (sorted(_WEIGHTS[model].sha256.items()), background_messages(), SENTENCES.read_text("utf-8"))
    digest = hashlib.sha256(repr((FORMAT, model, sources)).encode()).hexdigest()
    return cache / digest[:32]


def _list_folders(model: str) -> list[Path]:
    """List the folders in which a default encoder may be: in the user's cache, and in an installation without torch."""
    if model not in _WEIGHTS:
        return []
    return [_folder_in(cache, model) for cache in list_encoder_caches()]


def has_cached(model: str) -> bool:
    """Return whether a default encoder was built in a cache that this user may read, without reading its files."""
    manifests = (encoder_directory(model, folder) / MANIFEST_FILE for folder in _list_folders(model))
    return any(os.access(manifest, os.R_OK) for manifest in manifests)


def find_cached(model: str) -> Path | None:
    """Return the directory of a complete encoder in a cache, None if there is none that can be trusted."""
    for folder in _list_folders(model):
        directory = encoder_directory(model, folder)
        if is_protected(folder) and is_protected(directory) and is_compiled(model, folder):
            return directory
    return None


def open_cache(model: str) -> Path | None:
    """Create the folder for a default encoder in the user's cache; None if there is no cache, or none to write to."""
    cache = find_encoder_cache()
    if cache is None:
        return None
    folder = _folder_in(cache, model)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if is_protected(folder) and os.access(folder, os.W_OK) else None


def link_files(source: Path, target: Path) -> None:
    """Link all files of a directory into another; copy those that others can read, or that cannot be linked."""
    for file in source.iterdir():
        copy = target / file.name
        try:
            if file.stat().st_mode & OTHERS:
                shutil.copyfile(file, copy)
            else:
                os.link(file, copy)
        except OSError:
            shutil.copyfile(file, copy)
