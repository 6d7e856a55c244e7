"""Objects under a prefix of S3-compatible storage, or in a folder: write, read, list, delete.

All storage errors become one typed error; calls are bounded by timeouts and few retries.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import urlsplit

from config.foreign_variables import environment_allows_http
from config.operating_system import sync_to_disk
from pipeline.kernel.errors import ReverieError, StorageUnreachable
from pipeline.kernel.extras import require_extra

if TYPE_CHECKING:
    from obstore.store import ObjectStore

# The prefix of an address that is a folder.
FOLDER = "dir:"
CONNECT_S, READ_S, REQUEST_S = 2, 5, 60
MOST_RETRIES = 2
RETRY_S = 10
# Larger objects are sent in parts.
ONE_PART_BYTES = 64 * 1024**2

T = TypeVar("T")


class ObjectExists(ReverieError):
    """A write-once object exists already, or an object to replace was changed."""


def list_client_options() -> dict[str, str]:
    """Return the limits of every request as options of LanceDB's client."""
    return {
        "allow_http": str(environment_allows_http()).lower(),
        "connect_timeout": f"{CONNECT_S}s",
        "timeout": f"{REQUEST_S}s",
        "client_max_retries": str(MOST_RETRIES),
        "client_retry_timeout": str(RETRY_S),
    }


@dataclass(frozen=True, slots=True)
class ObjectStorage:
    """The objects under an address, by their relative keys; raises `unreachable` if the storage cannot be used."""

    url: str
    _store: "ObjectStore"
    unreachable: type[ReverieError] = StorageUnreachable
    # Prefix of every key in the storage, with a final slash unless it is empty.
    _prefix: str = ""

    @classmethod
    def open(cls, url: str, unreachable: type[ReverieError] = StorageUnreachable) -> Self:
        """Return the storage of an address, `s3://BUCKET/PREFIX` or `dir:FOLDER`, without a request."""
        # Imported here: without object storage, no client is loaded.
        require_extra("s3")
        from obstore.exceptions import BaseError

        try:
            return cls(url, _open_store(url), unreachable)
        except (BaseError, OSError) as error:
            raise unreachable(f"{url} cannot be used: {first_line(error)}") from error

    @property
    def _client(self) -> Any:
        import obstore

        return obstore

    def below(self, prefix: str) -> "ObjectStorage":
        """Return the part of this storage under a prefix, with the same client."""
        url, full_prefix = f"{self.url.rstrip('/')}/{prefix}", f"{self._prefix}{prefix}/"
        return ObjectStorage(url, self._store, self.unreachable, full_prefix)

    def put(self, key: str, content: bytes | Path, *, once: bool = False, replacing: str | None = None) -> int:
        """Write an object, or upload a file; return its size.

        Raises ObjectExists if a `once` object exists, or if the object to replace has another tag.
        """
        size = content.stat().st_size if isinstance(content, Path) else len(content)
        mode: Any = "create" if once else "overwrite" if replacing is None else {"e_tag": replacing}
        in_parts, path = size > ONE_PART_BYTES, self._prefix + key
        self._try(lambda: self._client.put(self._store, path, content, mode=mode, use_multipart=in_parts))
        self._try(lambda: self._sync_file(key))
        return size

    def _sync_file(self, key: str) -> None:
        """Flush a file of a folder, or its deletion, to disk, which the client does not."""
        if self.url.startswith(FOLDER):
            folder = Path(self.url.removeprefix(FOLDER))
            for path in (folder / key, *(folder / above for above in Path(key).parents)):
                with suppress(FileNotFoundError):
                    sync_to_disk(path)

    def get(self, key: str) -> bytes | None:
        """Return an object's content, None if it does not exist."""
        tagged = self.get_tagged(key)
        return None if tagged is None else tagged[0]

    def get_tagged(self, key: str) -> tuple[bytes, str] | None:
        """Return an object's content and its tag, which changes with the content; None if it does not exist."""

        def read() -> tuple[bytes, str]:
            response = self._client.get(self._store, self._prefix + key)
            return bytes(response.bytes()), response.meta["e_tag"] or ""

        try:
            return self._try(read)
        except FileNotFoundError:
            return None

    def fetch(self, key: str, file: Path) -> bool:
        """Download an object into a file in parts; return False if it does not exist."""

        def read() -> None:
            with file.open("wb") as target:
                for piece in self._client.get(self._store, self._prefix + key).stream():
                    target.write(piece)

        try:
            self._try(read)
        except FileNotFoundError:
            return False
        return True

    def list(self, prefix: str = "") -> dict[str, int]:
        """Return the sizes of the objects under a prefix that ends with a slash, by key."""
        listed: list[Any] = self._try(lambda: list(self._client.list(self._store, self._prefix + prefix).collect()))
        return {entry["path"].removeprefix(self._prefix): int(entry["size"]) for entry in listed}

    def list_folders(self) -> set[str]:
        """Return the first segments of all keys with several segments."""
        listed: Any = self._try(lambda: self._client.list_with_delimiter(self._store, self._prefix))
        return {str(folder).rstrip("/").removeprefix(self._prefix) for folder in listed["common_prefixes"]}

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; missing objects are ignored."""
        for key in keys:
            try:
                self._try(lambda key=key: self._client.delete(self._store, self._prefix + key))  # type: ignore[misc]
            except FileNotFoundError:
                continue
            self._try(lambda key=key: self._sync_file(key))  # type: ignore[misc]

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
    # Key, region and endpoint come from S3's environment variables.
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
    """Return the first line of a client's error; the rest is its history."""
    return str(error).partition("\n")[0][:300]
