"""Which requests must not reach the disk: a conservative check without a server.

The hook client imports this module while an agent waits: nothing heavy here. A doubt means that nothing is spooled.
"""
# ruff: noqa: PTH118, PTH123, PTH207 - pathlib alone takes longer than the hook client

import glob
import os
import re
from collections.abc import Iterable, Mapping

from pipeline.kernel.errors import StoreUnavailable
from pipeline.kernel.store.incognito_files import is_any_session_incognito

# In any configuration file, with any value but false; and the master switch with any value but true.
_SILENT = re.compile(r"\b(?:incognito|read_only)\b(?![\"']?\s*=\s*false\b)|\benabled\b[\"']?\s*=\s*(?!true\b)")
_FALSE = frozenset({"", "0", "false", "no", "off"})
_TRUE = frozenset({"1", "true", "yes", "on"})
STORE_KEY = "store.key"


def may_spool(home: str, variables: Mapping[str, str], sessions: Iterable[str] = ()) -> bool:
    """Return whether a request of some sessions may be written to the disk of this machine."""
    silent = (variables.get(name, "").strip().lower() for name in ("REVERIE_INCOGNITO", "REVERIE_READ_ONLY"))
    if any(value not in _FALSE for value in silent):
        return False
    if variables.get("REVERIE_ENABLED", "true").strip().lower() not in _TRUE:
        return False
    # Neither an encrypted store nor one on another machine keeps a copy here.
    if os.path.lexists(os.path.join(home, STORE_KEY)) or variables.get("REVERIE_STORE"):
        return False
    try:
        stores = glob.glob(os.path.join(glob.escape(home), "workspaces/*/events.sqlite"))
        return not (_is_silent_by_file(home) or is_any_session_incognito(stores, sessions))
    except (OSError, ValueError, StoreUnavailable):
        return False


def _is_silent_by_file(home: str) -> bool:
    files = [os.path.join(home, "config.toml"), *glob.glob(os.path.join(glob.escape(home), "workspaces/*/config.toml"))]
    for file in files:
        try:
            with open(file, encoding="utf-8") as stream:
                text = stream.read()
        except FileNotFoundError:
            continue
        if _SILENT.search(text) or re.search(r"^\s*[\"']?store\b", text, re.MULTILINE):
            return True
    return False
