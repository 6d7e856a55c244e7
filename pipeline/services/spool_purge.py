"""Remove purged texts from the requests that wait in the spool, and from those that were refused."""

import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from config.operating_system import sync_to_disk
from config.paths import SPOOL_BEGUN, SPOOL_ENDING, SPOOL_HELD, SPOOL_REFUSED, WORKSPACE_HEADER
from pipeline.errors import StoreUnavailable
from pipeline.store.atomic_files import writing

# Returns whether a text quotes a purged one; the workspace of the text is None if it is unknown.
Quotes = Callable[[str | None, str], bool]

BATCH = "/v1/memories/batch"
# A request that is rewritten has this ending meanwhile, so that it is not delivered.
CLAIMED = ".purge"


def scrub_spool(folder: Path, quotes: Quotes) -> None:
    """Delete the requests that quote a purged text; of a batch, only the memories that do.

    Raises StoreUnavailable while such a request is being delivered, and if a file cannot be changed: the purge stays
    queued, and its next turn also finds what was delivered meanwhile.
    """
    try:
        being_delivered = [file for file in _list_files(folder) if not _scrub(file, quotes)]
        for file in _list_files(folder / SPOOL_REFUSED):
            _scrub(file, quotes)
        if folder.is_dir():
            sync_to_disk(folder)
    except OSError as error:
        raise StoreUnavailable(f"the spool in {folder} cannot be searched: {error}") from error
    if being_delivered:
        raise StoreUnavailable(f"{being_delivered[0].name} quotes a purged memory and is being delivered")


def _list_files(folder: Path) -> list[Path]:
    """List requests and drafts, also those that an interrupted purge was rewriting."""
    if not folder.is_dir():
        return []
    return sorted(file for file in folder.iterdir() if file.name.endswith((SPOOL_ENDING, SPOOL_HELD, CLAIMED)))


def _scrub(file: Path, quotes: Quotes) -> bool:
    """Remove what a file quotes; return False if it must be delivered first."""
    if os.path.lexists(file) and not stat.S_ISREG(file.lstat().st_mode):
        # A folder, pipe, device or link contains no request.
        return True
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        # Its delivery was started since, or is finished: other steps of the purge then find the text in the store.
        begun = file.with_name(f"{file.name.removesuffix(SPOOL_ENDING)}{SPOOL_BEGUN}")
        return not begun.exists() or _scrub(begun, quotes)
    rest = _remove_quotations(data, quotes)
    if rest == data:
        return True
    if file.name.endswith(SPOOL_BEGUN) and file.parent.name != SPOOL_REFUSED:
        return False
    _rewrite(file, rest)
    return True


def _remove_quotations(data: bytes, quotes: Quotes) -> bytes | None:
    """Return the content of a file without quotations: unchanged, as a smaller batch, or None if nothing is left."""
    try:
        request = json.loads(data)
        workspace, path, body = request["headers"].get(WORKSPACE_HEADER), unquote(request["path"]), request["body"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        # A damaged file, or a draft that is being written.
        return None if quotes(None, data.decode(errors="replace")) else data
    if path == BATCH and isinstance(body, dict) and isinstance(body.get("items"), list):
        kept = [item for item in body["items"] if not _is_quoting(item, workspace, quotes)]
        if len(kept) < len(body["items"]):
            body["items"] = kept
            return json.dumps(request, ensure_ascii=False).encode() if kept else None
    return None if quotes(workspace, path) or _is_quoting(body, workspace, quotes) else data


def _is_quoting(value: Any, workspace: str | None, quotes: Quotes) -> bool:
    return any(quotes(workspace, text) for text in _list_texts(value))


def _list_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _list_texts(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _list_texts(item)


def _rewrite(file: Path, rest: bytes | None) -> None:
    """Replace the content of a file, or delete the file, unless its delivery is started meanwhile."""
    claimed = file if file.name.endswith(CLAIMED) else file.with_name(f".{file.name}{CLAIMED}")
    if claimed != file:
        file.replace(claimed)
    if rest is not None:
        with writing(file.with_name(claimed.name.removeprefix(".").removesuffix(CLAIMED))) as stream:
            stream.write(rest)
    claimed.unlink(missing_ok=True)
