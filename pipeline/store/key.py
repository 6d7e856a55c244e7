"""The key of an encrypted home: kept by its owner where they like, named in the home by its place and its mark.

A home is encrypted while `store.key` stands in it, a text of two lines: the owner's file, and by what its key is known.
The mark tells another key from a damaged store; of 256 random bits it gives nothing away.
"""

import hashlib
import re
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from config.paths import find_store_key
from pipeline.errors import KeyUnavailable
from pipeline.store.whole_file import writing

_KEY = re.compile(r"[0-9a-f]{64}")
_LONGEST = 4096


@dataclass(frozen=True, slots=True)
class StoreKey:
    """A key, as its hexadecimal digits, and the file of its owner's that holds it."""

    file: Path
    digits: str = field(repr=False)

    @property
    def mark(self) -> str:
        """Return by what this key is known from others."""
        return hashlib.sha256(bytes.fromhex(self.digits)).hexdigest()[:16]


def find_key(file: Path) -> StoreKey | None:
    """Return the key of the data directory that a file of the store stands in, None if that is not encrypted.

    Raises KeyUnavailable where the owner's file is not there, or holds another key.
    """
    place = find_store_key(file)
    return None if place is None else read_named(place)


def read_named(place: Path) -> StoreKey:
    """Return the key that a data directory's `store.key` names; raise KeyUnavailable if it cannot be had."""
    key_file, mark = named(place)
    key = read_key(key_file)
    if key.mark != mark:
        raise KeyUnavailable(f"{key_file} holds another key than the one that {place.parent} was encrypted with")
    return key


def named(place: Path) -> tuple[Path, str]:
    """Return which file a data directory's `store.key` names, and the mark of its key."""
    lines = _read(place).splitlines()
    if len(lines) != 2:
        raise KeyUnavailable(f"{place} names no key: remove it, and `reverie encrypt --key-file PATH` names it again")
    return Path(lines[0]), lines[1]


def read_key(file: Path) -> StoreKey:
    """Return the key that a file of its owner's holds; raise KeyUnavailable if it holds none."""
    digits = _read(file).strip()
    if not _KEY.fullmatch(digits):
        raise KeyUnavailable(f"{file} holds no key that `reverie encrypt` has made")
    return StoreKey(file, digits)


def _read(file: Path) -> str:
    try:
        with file.open(encoding="utf-8", errors="replace") as text:
            return text.read(_LONGEST)
    except FileNotFoundError as error:
        raise KeyUnavailable(
            f"the store is encrypted and its key {file} is not there: bring back the disk or stick that holds it, or "
            "say with `reverie encrypt --key-file PATH` where it is now"
        ) from error
    except OSError as error:
        raise KeyUnavailable(f"the store is encrypted and its key {file} cannot be read: {error.strerror}") from error


def make_key(file: Path) -> StoreKey:
    """Make a new key in a file of its own, which nobody else may read."""
    key = StoreKey(file, secrets.token_hex(32))
    _write(file, key.digits)
    return key


def name_key(place: Path, key: StoreKey) -> None:
    """Say in a data directory which key it is encrypted with, in the place of what was said before."""
    _write(place, f"{key.file}\n{key.mark}")


def _write(file: Path, text: str) -> None:
    with writing(file) as written:
        written.write(f"{text}\n".encode())
