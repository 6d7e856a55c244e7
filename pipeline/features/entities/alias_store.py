"""Other names of entities: mentions of an alias are linked to its target, until the two are separated.

A merge and a separation take effect at once on the linked mentions. A separation also queues the memories of both to
be linked again, because a memory that mentions both keeps a single mention of the merged entity.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from sqlite3 import Connection

from ulid import ULID

from pipeline.features.map import store as maps
from pipeline.kernel.records import EntityKind, ScopeKind, Stage
from pipeline.kernel.records.digestion import EntityMention
from pipeline.kernel.store import work
from pipeline.kernel.store.rows import Table, find_row, list_rows
from pipeline.kernel.store.visibility import may_be_derived_from

Name = tuple[EntityKind, str]
_ALIAS = "SELECT kind, name, target_kind, target_name, origin FROM entity_alias"


class AliasOrigin(StrEnum):
    """Who decided that two names are one entity, or that they are not."""

    LISTED = "listed"
    PERSON = "person"
    USER = "user"
    SEPARATE = "separate"


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name of an entity."""

    name: Name
    target: Name
    origin: AliasOrigin


def find_alias(db: Connection, name: Name) -> Alias | None:
    """Return what is decided about a name, None if nothing is."""
    return next(iter(_select(db, "kind = ? AND name = ?", name)), None)


def list_aliases(db: Connection, target: Name) -> list[Alias]:
    """List the other names of an entity."""
    return [alias for alias in _select(db, "target_kind = ? AND target_name = ?", target) if _is_merged(alias)]


def find_targets(db: Connection, name: str) -> list[Name]:
    """Return the entities that have another name, ignoring case."""
    found = _select(db, "name = ? OR name = ?", (name, name.casefold()))
    return [alias.target for alias in found if _is_merged(alias)]


def list_merged_by_users(db: Connection) -> list[Alias]:
    """List the names that users merged with other entities."""
    return _select(db, "origin = ?", (AliasOrigin.USER,))


def resolve(db: Connection, name: Name) -> Name:
    """Return the entity that mentions of a name are linked to."""
    alias = find_alias(db, name)
    return alias.target if alias is not None and _is_merged(alias) else name


def merge_listed(db: Connection, name: Name, target: Name) -> None:
    """Make a name another name of a target, unless something is decided about it."""
    if find_alias(db, name) is None:
        merge(db, name, resolve(db, target), AliasOrigin.LISTED)


def merge(db: Connection, name: Name, target: Name, origin: AliasOrigin) -> None:
    """Make a name another name of a target, and link its mentions to the target."""
    db.execute("DELETE FROM entity_alias WHERE kind = ? AND name = ?", target)
    db.execute(
        "UPDATE entity_alias SET target_kind = ?, target_name = ? "
        "WHERE target_kind = ? AND target_name = ? AND origin <> ?",
        (*target, *name, AliasOrigin.SEPARATE),
    )
    _put(db, Alias(name, target, origin))
    seq = _find_seq(db, name)
    if seq is not None:
        _move_mentions(db, seq, _find_seq(db, target) or _rename(db, seq, target))


def separate(db: Connection, alias: Alias, *, forever: bool) -> None:
    """Make another name an entity again; `forever` forbids automatic merges of the two."""
    if forever:
        _put(db, Alias(alias.name, alias.target, AliasOrigin.SEPARATE))
    else:
        db.execute("DELETE FROM entity_alias WHERE kind = ? AND name = ?", alias.name)
    seq = _find_seq(db, alias.target)
    if seq is None:
        return
    mentions = _list_surfaces(db, seq)
    work.add(db, [memory_seq for memory_seq, _ in mentions], [Stage.ENTITIES], time.time())
    moved = [seq for seq, surface in mentions if find_spelled_name(surface, [alias.target, alias.name]) == alias.name]
    if not moved:
        return
    if len(moved) == len(mentions) and _find_seq(db, alias.name) is None:
        _rename(db, seq, alias.name)
        return
    own = find_or_add(db, alias.name)
    db.executemany(
        "UPDATE mention SET entity_seq = ? WHERE memory_seq = ? AND entity_seq = ?",
        [(own, memory_seq, seq) for memory_seq in moved],
    )


def drop_unused(db: Connection, names: Sequence[Name]) -> None:
    """Drop aliases that no mention spells, and those of an entity that no mention spells by its own name.

    A deleted memory may have been the only one with that name.
    """
    for name in names:
        seq = _find_seq(db, name)
        if seq is None:
            db.execute(
                "DELETE FROM entity_alias WHERE (kind = ? AND name = ?) OR (target_kind = ? AND target_name = ?)",
                (*name, *name),
            )
        elif aliases := list_aliases(db, name):
            names_here = [name, *(alias.name for alias in aliases)]
            spelled = {find_spelled_name(surface, names_here) or name for _, surface in _list_surfaces(db, seq)}
            for alias in aliases:
                if alias.name not in spelled:
                    db.execute("DELETE FROM entity_alias WHERE kind = ? AND name = ?", alias.name)
                elif name not in spelled and alias.origin is not AliasOrigin.LISTED:
                    separate(db, alias, forever=False)


def merge_first_names(db: Connection, mentions: Iterable[EntityMention]) -> None:
    """Merge the first names of people with the only full name that starts with it; separate them if there are several.

    Only full names in memories that every reader of the workspace may see count.
    """
    for first in {mention.name.partition(" ")[0] for mention in mentions if mention.kind is EntityKind.PERSON}:
        _merge_first_name(db, first)


def _merge_first_name(db: Connection, first: str) -> None:
    alias = find_alias(db, (EntityKind.PERSON, first))
    if alias is not None and alias.origin is not AliasOrigin.PERSON:
        return
    full_names = _list_full_names(db, first)
    if alias is not None and (len(full_names) != 1 or alias.target[1] != full_names[0]):
        separate(db, alias, forever=False)
    if len(full_names) == 1 and _find_seq(db, (EntityKind.PERSON, first)) is not None:
        merge(db, (EntityKind.PERSON, first), (EntityKind.PERSON, full_names[0]), AliasOrigin.PERSON)


def _list_full_names(db: Connection, first: str) -> list[str]:
    return list_rows(
        db,
        str,
        "SELECT e.name FROM entity e WHERE e.kind = ? AND e.name > ? AND e.name < ? AND EXISTS ("  # noqa: S608
        "SELECT 1 FROM mention m JOIN memory ON memory.seq = m.memory_seq WHERE m.entity_seq = e.seq "
        f"AND memory.scope_kind = '{ScopeKind.WORKSPACE}' AND {may_be_derived_from()}) LIMIT 2",
        (EntityKind.PERSON, f"{first} ", f"{first}!"),
    )


def _fold(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold())) or name


def _is_merged(alias: Alias) -> bool:
    return alias.origin is not AliasOrigin.SEPARATE


def _select(db: Connection, which: str, values: Sequence[str]) -> list[Alias]:
    return [
        Alias((EntityKind(kind), name), (EntityKind(target_kind), target), AliasOrigin(origin))
        for kind, name, target_kind, target, origin in db.execute(f"{_ALIAS} WHERE {which} ORDER BY name", values)
    ]


def _put(db: Connection, alias: Alias) -> None:
    db.execute(
        "INSERT INTO entity_alias (kind, name, target_kind, target_name, origin) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (kind, name) DO UPDATE SET target_kind = excluded.target_kind, "
        "target_name = excluded.target_name, origin = excluded.origin",
        (*alias.name, *alias.target, alias.origin),
    )


def find_spelled_name(surface: str, names: Sequence[Name]) -> Name | None:
    """Return which of some names a surface spells; a surface may have a word before the name, as "PR 42" has."""
    folded = _fold(surface)
    exact = (name for name in names if folded == _fold(name[1]))
    return next(exact, None) or next((name for name in names if folded.endswith(_fold(name[1]))), None)


def find_or_add(db: Connection, name: Name) -> int:
    """Return an entity's row number; add the entity if it is new."""
    new = "INSERT INTO entity (id, kind, name) VALUES (?, ?, ?) RETURNING seq"
    return _find_seq(db, name) or int(db.execute(new, (str(ULID()), *name)).fetchone()[0])


def _find_seq(db: Connection, name: Name) -> int | None:
    return find_row(db, int, "SELECT seq FROM entity WHERE kind = ? AND name = ?", name)


def _list_surfaces(db: Connection, entity_seq: int) -> list[tuple[int, str]]:
    return db.execute("SELECT memory_seq, surface FROM mention WHERE entity_seq = ?", (entity_seq,)).fetchall()


def _rename(db: Connection, seq: int, name: Name) -> int:
    db.execute("UPDATE entity SET kind = ?, name = ? WHERE seq = ?", (*name, seq))
    return seq


def _move_mentions(db: Connection, seq: int, target_seq: int) -> None:
    if seq == target_seq:
        return
    db.execute(
        "UPDATE mention SET entity_seq = ? WHERE entity_seq = ? "
        "AND memory_seq NOT IN (SELECT memory_seq FROM mention WHERE entity_seq = ?)",
        (target_seq, seq, target_seq),
    )
    db.execute("DELETE FROM mention WHERE entity_seq = ?", (seq,))
    maps.forget(db, [seq])
    db.execute("DELETE FROM entity WHERE seq = ?", (seq,))


# An alias is deleted with the last mention of its entity.
TABLES = (Table("entity_alias", ("kind", "name"), text=("name", "target_name")),)
