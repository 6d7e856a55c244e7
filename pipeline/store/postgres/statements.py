"""Translate the store's statements to PostgreSQL.

The statements are the same for SQLite and PostgreSQL except for the differences handled here: placeholders, conflict
targets (every table starts with its workspace), LIKE (case-insensitive in SQLite), hints for SQLite's planner, and
lists of values, which must be arrays to keep a plan.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

Parameters = Sequence[Any] | Mapping[str, Any]

# Skip texts, quoted names and comments; a cast has two colons.
_PARTS = re.compile(
    r"""(?P<kept>'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|::)
    |\?(?P<number>\d+)?
    |(?<![\w:]):(?P<name>[A-Za-z_]\w*)
    |(?P<percent>%)
    |\b(?P<conflict>ON\s+CONFLICT\s*\()
    |\b(?P<like>LIKE)\b
    |\b(?P<among>(?:NOT\s+)?IN\s*\(\s*SELECT\s+(?:value|CAST\(value\s+AS\s+BIGINT\))\s+FROM\s+json_each\()(?=[?:][^,]*?\)\))
    |\s+(?P<hint>(?:NOT\s+INDEXED|INDEXED\s+BY\s+\w+))\b
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SAID_AS = {None: "%s", "percent": "%%", "like": "ILIKE", "hint": ""}


# Numbered values are always named, because few statements name as many values as they get.
@lru_cache(maxsize=2048)
def translate(statement: str, *, of_workspace: bool) -> bytes:
    """Return a statement about a workspace or the data directory for psycopg; numbered values become named ones."""
    return _PARTS.sub(partial(_replace, of_workspace), statement).encode()


def _replace(of_workspace: bool, match: re.Match[str]) -> str:
    part, text = match.lastgroup, match[0]
    if part in ("number", "name"):
        return f"%({'p' if part == 'number' else ''}{match[part]})s"
    if part == "conflict":
        return f"{text}workspace, " if of_workspace else text
    if part == "among":
        listed = "numbers_in(" if "CAST" in text else "texts_in("
        return f"<> ALL ({listed}" if text.startswith("NOT") else f"= ANY ({listed}"
    return _SAID_AS[part] if part in _SAID_AS else text.replace("%", "%%")


def name_values(statement: bytes, values: Parameters) -> Parameters:
    """Return a statement's values by name if it numbers them."""
    if b"%(p1)s" in statement and not isinstance(values, Mapping):
        return {f"p{number}": value for number, value in enumerate(values, 1)}
    return values
