"""The key of an encrypted data directory: a file that its owner keeps elsewhere.

A data directory is encrypted if it contains `store.key`, a text of two lines: the path of the key file and the key's
mark. The mark distinguishes a wrong key from a damaged store and reveals nothing about its 256 random bits.
"""

import hashlib
import re
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from config.paths import find_store_key
from pipeline.kernel.errors import KeyUnavailable
from pipeline.kernel.store.atomic_files import writing

_KEY = re.compile(r"[0-9a-f]{64}")
_LONGEST = 4096


@dataclass(frozen=True, slots=True)
class StoreKey:
    """A key in hexadecimal digits, and the file that contains it."""

    file: Path
    digits: str = field(repr=False)

    @property
    def mark(self) -> str:
        """Return the mark that identifies this key."""
        return hashlib.sha256(bytes.fromhex(self.digits)).hexdigest()[:16]


def find_key(file: Path) -> StoreKey | None:
    """Return the key for a store file, None if its data directory is not encrypted.

    Raises KeyUnavailable if the key file is missing or contains another key.
    """
    key_record = find_store_key(file)
    return None if key_record is None else read_named(key_record)


def read_named(record: Path) -> StoreKey:
    """Return the key that a `store.key` names; raise KeyUnavailable if it cannot be read."""
    key_file, mark = named(record)
    key = read_key(key_file)
    if key.mark != mark:
        raise KeyUnavailable(f"{key_file} contains another key than the one that {record.parent} was encrypted with")
    return key


def named(record: Path) -> tuple[Path, str]:
    """Return the key file that a `store.key` names, and the mark of its key."""
    lines = _read(record).splitlines()
    if len(lines) != 2:
        raise KeyUnavailable(f"{record} names no key. Remove it, and run `reverie store encrypt --key-file PATH`")
    return Path(lines[0]), lines[1]


def read_key(file: Path) -> StoreKey:
    """Return the key in a key file; raise KeyUnavailable if it contains none."""
    digits = _read(file).strip()
    if not _KEY.fullmatch(digits):
        raise KeyUnavailable(f"{file} contains no key of `reverie store encrypt`")
    return StoreKey(file, digits)


def _read(file: Path) -> str:
    try:
        with file.open(encoding="utf-8", errors="replace") as text:
            return text.read(_LONGEST)
    except FileNotFoundError as error:
        raise KeyUnavailable(
            f"the store is encrypted and its key {file} is missing. Connect the disk that contains it, or run "
            "`reverie store encrypt --key-file PATH` with its new path"
        ) from error
    except OSError as error:
        raise KeyUnavailable(f"the store is encrypted and its key {file} cannot be read: {error.strerror}") from error


def make_key(file: Path) -> StoreKey:
    """Create a new key in a private file."""
    key = StoreKey(file, secrets.token_hex(32))
    _write(file, key.digits)
    return key


def write_key_record(record: Path, key: StoreKey) -> None:
    """Record the key of a data directory, replacing an earlier record."""
    _write(record, f"{key.file}\n{key.mark}")


def _write(file: Path, text: str) -> None:
    with writing(file) as written:
        written.write(f"{text}\n".encode())
