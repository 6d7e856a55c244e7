"""Which requests must not reach the disk: a conservative check without a server.

The hook client imports this module while an agent waits: standard library only. A doubt means that nothing is spooled.
"""
# ruff: noqa: PTH118, PTH123, PTH207 - pathlib alone takes longer than the hook client

import glob
import os
import re
import sqlite3
from collections.abc import Iterable, Mapping
from urllib.parse import quote

# In any configuration file, with any value but false.
_SILENT = re.compile(r"\b(?:incognito|read_only)\b(?![\"']?\s*=\s*false\b)")
_HOOKS_OFF = re.compile(r"\bhooks\b[\"']?\s*=\s*(?!true\b)")
_FALSE = frozenset({"", "0", "false", "no", "off"})
_TRUE = frozenset({"1", "true", "yes", "on"})
STORE_KEY = "store.key"


def may_spool(home: str, variables: Mapping[str, str], sessions: Iterable[str] = (), *, is_event: bool = False) -> bool:
    """Return whether a request of some sessions may be written to the disk of this machine."""
    silent = (variables.get(name, "").strip().lower() for name in ("REVERIE_INCOGNITO", "REVERIE_READ_ONLY"))
    if any(value not in _FALSE for value in silent):
        return False
    if is_event and variables.get("REVERIE_HOOKS", "true").strip().lower() not in _TRUE:
        return False
    # Neither an encrypted store nor one on another machine keeps a copy here.
    if os.path.lexists(os.path.join(home, STORE_KEY)) or variables.get("REVERIE_STORE"):
        return False
    try:
        return not (_is_silent_by_file(home, is_event=is_event) or _is_any_incognito(home, set(sessions)))
    except (OSError, ValueError, sqlite3.Error):
        return False


def _is_silent_by_file(home: str, *, is_event: bool) -> bool:
    files = [os.path.join(home, "config.toml"), *glob.glob(os.path.join(glob.escape(home), "workspaces/*/config.toml"))]
    for file in files:
        try:
            with open(file, encoding="utf-8") as stream:
                text = stream.read()
        except FileNotFoundError:
            continue
        if (
            _SILENT.search(text)
            or (is_event and _HOOKS_OFF.search(text))
            or re.search(r"^\s*[\"']?store\b", text, re.MULTILINE)
        ):
            return True
    return False


def _is_any_incognito(home: str, sessions: set[str]) -> bool:
    """Return whether any of the sessions is incognito in any workspace."""
    if not sessions:
        return False
    names = {_fold(session) for session in sessions}
    for file in glob.glob(os.path.join(glob.escape(home), "workspaces/*/events.sqlite")):
        connection = sqlite3.connect(f"file:{quote(file)}?mode=ro", uri=True, timeout=0.2)
        try:
            rows = connection.execute("SELECT session_id FROM incognito").fetchall()
        finally:
            connection.close()
        # A person's session has the person's id before its name.
        if any(_fold(stored).endswith(name) for (stored,) in rows for name in names):
            return True
    return False


def _fold(name: str) -> str:
    return " ".join(name.split()).casefold()
