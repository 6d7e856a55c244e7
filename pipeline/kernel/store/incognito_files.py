"""Look up incognito sessions in store files without a server. The hook client imports this module: keep it small."""

import sqlite3
from collections.abc import Iterable
from urllib.parse import quote

from pipeline.kernel.errors import StoreUnavailable

# Seconds to wait for a store that is being written.
BUSY_S = 0.2


def is_any_session_incognito(files: Iterable[str], sessions: Iterable[str]) -> bool:
    """Return whether any of the sessions is incognito in any store; raise StoreUnavailable if one is not readable."""
    names = {_fold(session) for session in sessions}
    if not names:
        return False
    # A person's session has the person's id before its name.
    return any(_fold(stored).endswith(name) for file in files for stored in _list_incognito(file) for name in names)


def _list_incognito(file: str) -> list[str]:
    try:
        connection = sqlite3.connect(f"file:{quote(file)}?mode=ro", uri=True, timeout=BUSY_S)
        try:
            return [str(name) for (name,) in connection.execute("SELECT session_id FROM incognito")]
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise StoreUnavailable(f"{file}: {error}") from error


def _fold(name: str) -> str:
    return " ".join(name.split()).casefold()
