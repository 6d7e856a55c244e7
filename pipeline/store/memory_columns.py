"""How the fields of a memory are stored: one column each, or two, as text and numbers."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from typing import Any

from pipeline.errors import StoreDamaged
from pipeline.records import (
    Anchor,
    FactKey,
    Kind,
    Memory,
    Scope,
    ScopeKind,
    Sensitivity,
    Source,
    Tier,
    Trust,
)

# Memories of a workspace share few scopes.
MOST_SCOPES = 1024


@dataclass(frozen=True, slots=True)
class Codec:
    """Encoding of a field that is no plain value: its columns, and the conversions in both directions."""

    columns: tuple[str, ...]
    encode: Callable[[Any], tuple[Any, ...]]
    decode: Callable[..., Any]


def _enum(name: str, kind: type[Any]) -> Codec:
    # Looking a member up is much faster than calling its class.
    return Codec((name,), lambda member: (member,), {str(member): member for member in kind}.__getitem__)


def _flag(name: str) -> Codec:
    return Codec((name,), lambda flag: (int(flag),), bool)


def _object(name: str) -> Codec:
    # Most memories have none of these, and parsing would be a third of the work.
    return Codec(
        (name,),
        lambda value: (json.dumps(value, ensure_ascii=False) if value else "{}",),
        lambda text: {} if text == "{}" else json.loads(text),
    )


def _decode_tags(text: str) -> tuple[str, ...]:
    return () if text == "[]" else tuple(json.loads(text))


def _encode_anchor(anchor: Anchor | None) -> tuple[str | None]:
    return (None if anchor is None else json.dumps(asdict(anchor), ensure_ascii=False),)


def _decode_anchor(text: str | None) -> Anchor | None:
    return None if text is None else Anchor(**json.loads(text))


def _encode_key(key: FactKey | None) -> tuple[str | None, str | None]:
    return (None, None) if key is None else (key.subject, key.attribute)


def _decode_key(subject: str | None, attribute: str) -> FactKey | None:
    return None if subject is None else FactKey(subject, attribute)


class typed_damage:  # noqa: N801 - a context manager, as a class because a generator would double the cost of a row
    """Report a value that no version of Reverie writes as a damaged store."""

    def __enter__(self) -> None:
        """Start to decode a row."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _traceback: object) -> None:
        """Raise StoreDamaged in place of an error of a decoder."""
        if kind is not None and issubclass(kind, ValueError | KeyError | TypeError):
            copies = "`reverie store snapshot list` shows the copies to restore"
            raise StoreDamaged(f"A row of the store contains an invalid value; {copies}") from error


# All other fields are stored unchanged in the column of their name.
CODECS: Mapping[str, Codec] = {
    "kind": _enum("kind", Kind),
    "scope": Codec(
        ("scope_kind", "scope_id"),
        lambda scope: (scope.kind, scope.id or ""),
        lru_cache(MOST_SCOPES)(lambda kind, owner: Scope(ScopeKind(kind), owner or None)),
    ),
    "tags": Codec(("tags",), lambda tags: (json.dumps(tags) if tags else "[]",), _decode_tags),
    "metadata": _object("metadata"),
    "source": _enum("source", Source),
    "trust": _enum("trust", Trust),
    "tier": _enum("tier", Tier),
    "sensitivity": Codec(
        ("sensitivity",),
        lambda value: (value or Sensitivity.NORMAL,),
        {str(member): member for member in Sensitivity}.__getitem__,
    ),
    "pinned": _flag("pinned"),
    "details": _object("details"),
    "anchor": Codec(("anchor",), _encode_anchor, _decode_anchor),
    "candidate": _flag("candidate"),
    "instructs": _flag("instructs"),
    "key": Codec(("subject", "attribute"), _encode_key, _decode_key),
}
FIELDS = tuple(field.name for field in fields(Memory))
NAMES = tuple(column for name in FIELDS for column in (CODECS[name].columns if name in CODECS else (name,)))
COLUMNS = ", ".join(NAMES)
