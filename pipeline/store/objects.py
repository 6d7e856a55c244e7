"""Objects under a prefix of S3-compatible storage, or in a folder: put once or over, read, listed, deleted.

Whatever is wrong with the storage itself is one typed error; no call waits longer than its timeouts and few retries.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import urlsplit

from config.settings import environment_allows_http
from pipeline.errors import ReverieError, StorageUnreachable

if TYPE_CHECKING:
    from obstore.store import ObjectStore

# How an address begins that is a folder.
FOLDER = "dir:"
CONNECT_S, READ_S, REQUEST_S = 2, 5, 60
MOST_RETRIES = 2
RETRY_S = 10
# Beyond this an object is sent in parts.
ONE_PART_BYTES = 64 * 1024**2

T = TypeVar("T")


class ObjectExists(ReverieError):
    """Say that an object that is written once is there already, or is not the one that was to be replaced."""


def list_client_options() -> dict[str, str]:
    """Return the limits of every request, as LanceDB's own client takes them."""
    return {
        "allow_http": str(environment_allows_http()).lower(),
        "connect_timeout": f"{CONNECT_S}s",
        "timeout": f"{REQUEST_S}s",
        "client_max_retries": str(MOST_RETRIES),
        "client_retry_timeout": str(RETRY_S),
    }


@dataclass(frozen=True, slots=True)
class ObjectStorage:
    """The objects under an address, by their keys below it; `unreachable` is raised where it cannot be used."""

    url: str
    _store: "ObjectStore"
    unreachable: type[ReverieError] = StorageUnreachable
    # Of every key in the store, with a slash at its end unless it is empty.
    _prefix: str = ""

    @classmethod
    def open(cls, url: str, unreachable: type[ReverieError] = StorageUnreachable) -> Self:
        """Return the storage of an address, `s3://BUCKET/PREFIX` or `dir:FOLDER`; nothing is asked of it yet."""
        # Who keeps everything in the data directory loads no client.
        from obstore.exceptions import BaseError

        try:
            return cls(url, _open_store(url), unreachable)
        except (BaseError, OSError) as error:
            raise unreachable(f"{url} cannot be used: {first_line(error)}") from error

    def below(self, prefix: str) -> "ObjectStorage":
        """Return the part of this storage under a prefix, by the same client."""
        url, whole = f"{self.url.rstrip('/')}/{prefix}", f"{self._prefix}{prefix}/"
        return ObjectStorage(url, self._store, self.unreachable, whole)

    def put(self, key: str, content: bytes | Path, *, once: bool = False, replacing: str | None = None) -> int:
        """Write an object, or send a file as one; return its size.

        Raises ObjectExists for one that is there though it is written `once`, or is another than that of the tag.
        """
        import obstore

        size = content.stat().st_size if isinstance(content, Path) else len(content)
        mode: Any = "create" if once else "overwrite" if replacing is None else {"e_tag": replacing}
        in_parts, path = size > ONE_PART_BYTES, self._prefix + key
        self._try(lambda: obstore.put(self._store, path, content, mode=mode, use_multipart=in_parts))
        return size

    def get(self, key: str) -> bytes | None:
        """Return what an object holds, None if there is none."""
        found = self.get_tagged(key)
        return None if found is None else found[0]

    def get_tagged(self, key: str) -> tuple[bytes, str] | None:
        """Return what an object holds and the tag that every change of it changes, None if there is none."""
        import obstore

        def read() -> tuple[bytes, str]:
            found = obstore.get(self._store, self._prefix + key)
            return bytes(found.bytes()), found.meta["e_tag"] or ""

        try:
            return self._try(read)
        except FileNotFoundError:
            return None

    def fetch(self, key: str, file: Path) -> bool:
        """Write what an object holds into a file, piece by piece; return False where there is no such object."""
        import obstore

        def read() -> None:
            with file.open("wb") as target:
                for piece in obstore.get(self._store, self._prefix + key).stream():
                    target.write(piece)

        try:
            self._try(read)
        except FileNotFoundError:
            return False
        return True

    def list(self, prefix: str = "") -> dict[str, int]:
        """Return the sizes of the objects under a prefix that ends with a slash, by key."""
        import obstore

        found: list[Any] = self._try(lambda: list(obstore.list(self._store, self._prefix + prefix).collect()))
        return {one["path"].removeprefix(self._prefix): int(one["size"]) for one in found}

    def list_folders(self) -> set[str]:
        """Return the first parts of the keys that have several."""
        import obstore

        found: Any = self._try(lambda: obstore.list_with_delimiter(self._store, self._prefix))
        return {str(one).rstrip("/").removeprefix(self._prefix) for one in found["common_prefixes"]}

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; one that is not there is none of anybody's concern."""
        import obstore

        for key in keys:
            try:
                self._try(lambda key=key: obstore.delete(self._store, self._prefix + key))  # type: ignore[misc]
            except FileNotFoundError:
                continue

    def clear(self, prefix: str = "") -> None:
        """Delete everything under a prefix that ends with a slash."""
        self.delete(self.list(prefix))

    def _try(self, act: Callable[[], T]) -> T:
        from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

        try:
            return act()
        except FileNotFoundError:
            raise
        except (AlreadyExistsError, PreconditionError) as error:
            raise ObjectExists(f"{self.url}: {first_line(error)}") from error
        except (BaseError, OSError) as error:
            raise self.unreachable(f"{self.url} cannot be used: {first_line(error)}") from error


def _open_store(url: str) -> "ObjectStore":
    from obstore.store import LocalStore, S3Store

    if url.startswith(FOLDER):
        return LocalStore(prefix=Path(url.removeprefix(FOLDER)))
    parts = urlsplit(url)
    # Key, region and endpoint are S3's own variables of the environment.
    return S3Store(
        parts.netloc,
        prefix=parts.path.strip("/") or None,
        client_options={
            "allow_http": environment_allows_http(),
            "connect_timeout": timedelta(seconds=CONNECT_S),
            "read_timeout": timedelta(seconds=READ_S),
            "timeout": timedelta(seconds=REQUEST_S),
        },
        retry_config={"max_retries": MOST_RETRIES, "retry_timeout": timedelta(seconds=RETRY_S)},
    )


def first_line(error: Exception) -> str:
    """Return what an error of a client says first: the rest is its history."""
    return str(error).partition("\n")[0][:300]
