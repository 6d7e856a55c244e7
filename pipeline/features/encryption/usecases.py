"""Encryption at rest: the files that may contain a memory's text, encrypted with a key that their owner keeps."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from config.operating_system import sync_to_disk
from config.paths import HomePaths
from pipeline.index.segment import convert_segment, find_plain_names, list_segments
from pipeline.kernel.errors import Conflict, FieldError, InvalidField, KeyUnavailable, StoreDamaged
from pipeline.kernel.extras import require_extra
from pipeline.kernel.store import backup, driver, encryption, key
from pipeline.kernel.store.home_file import import_earlier_files
from pipeline.kernel.store.key import StoreKey

# Shown wherever the encryption is described: what a reader of the disk still sees.
NOT_ENCRYPTED = (
    "vectors and word counts of the search indexes (without words), logs (without texts), settings, tokens, compiled "
    "models, and exports without a passphrase: encrypt the disk for these"
)


@dataclass(slots=True)
class Converted:
    """Number of converted files by folder and of files already converted, and the damaged files that were skipped."""

    files: dict[str, int] = field(default_factory=dict)
    already: int = 0
    left: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class EncryptionState:
    """Whether a data directory is encrypted, its key file, why its key is unavailable, and files that are plain."""

    is_encrypted: bool
    key_file: Path | None = None
    problem: str | None = None
    plain: tuple[Path, ...] = ()


def describe_encryption(paths: HomePaths) -> EncryptionState:
    """Describe the encryption of a data directory."""
    if not paths.store_key.is_file():
        return EncryptionState(is_encrypted=False)
    key_file, problem = None, None
    try:
        key_file, _ = key.named(paths.store_key)
        key.read_named(paths.store_key)
    except KeyUnavailable as error:
        problem = str(error)
    stores = [file for file in encryption.list_all(paths) if driver.is_plain(file)]
    words = [
        file
        for name in encryption.list_folders(paths)
        for folder in paths.workspace(name).segment_folders
        for file in find_plain_names(folder)
    ]
    return EncryptionState(True, key_file, problem, (*stores, *words))


def choose_key(paths: HomePaths, key_file: Path | None) -> bool:
    """Name the key that encrypts the data directory from now on; return whether it was made now.

    Raises InvalidField for an unsuitable key file, Conflict if the data directory has another key.
    """
    require_extra("encryption")
    if key_file is None:
        if not paths.store_key.is_file():
            raise InvalidField(FieldError("key_file", "is missing: name a key file outside of the data directory"))
        key.read_named(paths.store_key)
        return False
    file = key_file.absolute()
    _check_place(paths, file)
    if paths.store_key.is_file():
        _name_again(paths, file)
        return False
    is_new = not file.exists()
    with backup.typed_errors(paths.store_key):
        store_key = None if is_new else key.read_key(file)
        locked = encryption.find_unreadable_store(paths, store_key)
        if locked is not None:
            raise Conflict(
                f"{locked} is encrypted with another key, or damaged: name its key, or put a snapshot back first"
            )
        store_key = key.make_key(file) if store_key is None else store_key
        # Record the key before encrypting any file, so that every encrypted file can always be read.
        key.write_key_record(paths.store_key, store_key)
    return is_new


def _check_place(paths: HomePaths, file: Path) -> None:
    if file.resolve().is_relative_to(paths.root.resolve()):
        says = f"{file} is in the data directory that the key encrypts. Keep the key elsewhere."
    elif not file.parent.is_dir():
        says = f"{file.parent} is not a folder, or it is not mounted"
    elif file.exists() and not file.is_file():
        says = f"{file} is not a file"
    else:
        return
    raise InvalidField(FieldError("key_file", says))


def _name_again(paths: HomePaths, file: Path) -> None:
    _, mark = key.named(paths.store_key)
    store_key = key.read_key(file)
    if store_key.mark != mark:
        raise Conflict(f"{file} contains another key than the one that encrypts {paths.root}")
    with backup.typed_errors(paths.store_key):
        key.write_key_record(paths.store_key, store_key)


def encrypt_home(paths: HomePaths) -> Converted:
    """Encrypt every plain file. The caller chooses the key and stops all processes of the data directory before.

    An interruption loses nothing: each file is completely plain or completely encrypted, and the next run continues.
    """
    with backup.typed_errors(paths.root):
        converted = _convert_all(paths, key.read_named(paths.store_key))
        # The plain logs may quote texts.
        for file in paths.logs.glob("*"):
            if file.is_file():
                encryption.erase(file)
    return converted


def decrypt_home(paths: HomePaths) -> Converted:
    """Decrypt every file of a data directory and forget its key; leave the owner's key file unchanged."""
    if not paths.store_key.is_file():
        return Converted()
    key.read_named(paths.store_key)
    with backup.typed_errors(paths.root):
        converted = _convert_all(paths, None)
        # Keep the key record while any file is still encrypted.
        if not converted.left:
            paths.store_key.unlink()
            sync_to_disk(paths.root)
    return converted


def _convert_all(paths: HomePaths, to: StoreKey | None) -> Converted:
    converted = Converted()
    import_earlier_files(paths.home)
    for name, files, draft in _list_work(paths):
        for file in files:
            try:
                is_changed = encryption.convert(file, draft, to)
            except StoreDamaged as error:
                converted.left.append(str(error))
                continue
            converted.files[name] = converted.files.get(name, 0) + is_changed
            converted.already += not is_changed
    for workspace in encryption.list_folders(paths):
        for folder in paths.workspace(workspace).segment_folders:
            for name in list_segments(folder):
                convert_segment(folder, name, to)
    return converted


def _list_work(paths: HomePaths) -> Iterator[tuple[str, list[Path], Path]]:
    """Yield the groups of files that belong together, and where a draft of each group is written."""
    home = [(paths.home.stem, paths.snapshots, partial(encryption.list_home, paths))]
    workspaces = [
        (name, paths.workspace(name).snapshots, partial(encryption.list_stores, paths, name))
        for name in encryption.list_folders(paths)
    ]
    for name, folder, list_files in (home if encryption.list_home(paths) else []) + workspaces:
        # No snapshot is taken during this time, and leftovers of an interrupted run are removed.
        with backup.locked(folder):
            yield name, list_files(), folder / f"{backup.PARTIAL}converted.sqlite"
