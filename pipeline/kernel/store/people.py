"""The people who share a data directory: identities, token hashes, roles per workspace, and the access log.

The access log says when each person read or wrote which memories; it is limited in days and rows.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from sqlite3 import Connection
from typing import Any, Final

from pipeline.kernel.records.people import Caller, Person, Role
from pipeline.kernel.store.database import OpenTransaction, Tables
from pipeline.kernel.store.rows import Rows, Table, join_conditions


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a person's device, without its secret; the last use is stored to the hour."""

    id: str
    person: str
    device: str
    created_at: str
    expires_at: str | None = None
    last_used_at: str | None = None
    revoked_at: str | None = None


_PERSON = "SELECT id, name, is_admin FROM person WHERE removed_at IS NULL"
_TOKEN = "id, person, device, created_at, expires_at, last_used_at, revoked_at"  # noqa: S105 - names of columns


# The tables of a snapshot of people: all except the access log.
SNAPSHOT_TABLES: Final = ("person", "token", "workspace_grant")
Content = list[list[tuple[Any, ...]]]
_CONTENT: Final = (
    "SELECT * FROM person ORDER BY id",
    "SELECT id, person, device, hash, created_at, expires_at, revoked_at FROM token ORDER BY id",
    "SELECT * FROM workspace_grant ORDER BY person, workspace",
)


MAX_LOG_ROWS = 1_000_000
# Maximum number of ids per entry of the access log; their total number is stored as well.
MAX_IDS_PER_ENTRY = 100


@dataclass(frozen=True, slots=True)
class AccessEntry:
    """One request of a person: token, workspace, route, status, and the memories concerned, by id, never by text.

    A request without a token came from a signed-in browser.
    """

    at: str
    request_id: str
    person: str
    token_id: str | None
    workspace: str | None
    action: str
    status: int
    memory_ids: tuple[str, ...] = ()
    memories: int = 0
    seq: int = 0


_ENTRIES = Rows(AccessEntry, "access", request_id="request", token_id="token")  # noqa: S106 - a column


@dataclass(frozen=True, slots=True)
class AccessQuery:
    """Filter by person, workspace and start time; None means all."""

    person: str | None = None
    workspace: str | None = None
    since: str | None = None


class People:
    """The people of a data directory."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._exists = False

    @property
    def exists(self) -> bool:
        """Return whether a person was ever added."""
        if not self._exists:
            self._exists = bool(self._tables.query("SELECT 1 FROM person LIMIT 1"))
        return self._exists

    @contextmanager
    def transaction(self) -> Iterator["People"]:
        """Yield the people within one transaction: either all changes are stored, or none."""
        with self._tables.write() as db:
            yield People(OpenTransaction(db))

    # People

    def find(self, person_id: str) -> Person | None:
        """Return a person, unless they were removed."""
        return self._find_person("id = ?", (person_id,))

    def list_people(self) -> list[Person]:
        """List all people who were not removed, by id."""
        return self._tables.list_rows(Person, f"{_PERSON} ORDER BY id")

    def list_ids(self) -> set[str]:
        """List all ids, including those of removed people."""
        return set(self._tables.list_rows(str, "SELECT id FROM person"))

    def add(self, person: Person, at: str) -> None:
        """Add a person."""
        self._tables.run(
            "INSERT INTO person (id, name, is_admin, added_at) VALUES (?, ?, ?, ?)",
            (person.id, person.name, int(person.is_admin), at),
        )

    def set_admin(self, person_id: str, *, is_admin: bool) -> None:
        """Grant or withdraw the admin role."""
        self._tables.run("UPDATE person SET is_admin = ? WHERE id = ?", (int(is_admin), person_id))

    def remove(self, person_id: str, at: str) -> None:
        """Remove a person with their roles, and revoke their tokens."""
        with self._tables.write() as db:
            remove(db, person_id, at)

    # Tokens

    def add_token(self, token: Token, digest: str) -> None:
        """Add a token by its hash."""
        self._tables.run(
            "INSERT INTO token (id, person, device, hash, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?)",
            (token.id, token.person, token.device, digest, token.created_at, token.expires_at),
        )

    def list_tokens(self) -> list[Token]:
        """List all tokens of people who were not removed, the oldest first."""
        return self._tables.list_rows(
            Token,
            f"SELECT {_TOKEN} FROM token WHERE person IN (SELECT id FROM person WHERE removed_at IS NULL) "  # noqa: S608
            "ORDER BY created_at, id",
        )

    def revoke(self, token_ids: list[str], at: str) -> None:
        """Revoke tokens; they are rejected from the next request on."""
        self._tables.run(
            "UPDATE token SET revoked_at = ? WHERE id IN (SELECT value FROM json_each(?)) AND revoked_at IS NULL",
            (at, json.dumps(token_ids)),
        )

    def record_use(self, token_id: str, at: str) -> None:
        """Record the use of a token."""
        self._tables.run("UPDATE token SET last_used_at = ? WHERE id = ?", (at, token_id))

    def find_caller(self, digest: str, now: str) -> tuple[Caller, str | None] | None:
        """Return the holder of a token by its hash, and its last use; None for a token that is not valid now."""
        return self._find_holder("t.hash = ?", digest, now)

    def find_holder(self, token_id: str, now: str) -> Caller | None:
        """Return the holder of a token by its id; None for a token that is not valid now."""
        holder = self._find_holder("t.id = ?", token_id, now)
        return None if holder is None else holder[0]

    def _find_holder(self, which: str, named: str, now: str) -> tuple[Caller, str | None] | None:
        rows = self._tables.query(
            "SELECT t.id, t.last_used_at, p.id, p.name, p.is_admin, g.workspace, g.role FROM token t "  # noqa: S608 - constant text
            "JOIN person p ON p.id = t.person LEFT JOIN workspace_grant g ON g.person = p.id "
            f"WHERE {which} AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > ?) "
            "AND p.removed_at IS NULL",
            (named, now),
        )
        return (_caller(rows), rows[0][1]) if rows else None

    def find_signed_in(self, person_id: str, since: str) -> Caller | None:
        """Return a person's permissions in a browser that signed in at a time, None if they were signed out since.

        A person is signed out if they were removed or all their tokens were revoked.
        """
        rows = self._tables.query(
            "SELECT NULL, NULL, p.id, p.name, p.is_admin, g.workspace, g.role FROM person p "
            "LEFT JOIN workspace_grant g ON g.person = p.id WHERE p.id = ? AND p.removed_at IS NULL "
            "AND (p.signed_out_at IS NULL OR p.signed_out_at < ?)",
            (person_id, since),
        )
        return _caller(rows) if rows else None

    # Names at the OpenID Connect provider

    def set_email(self, person_id: str, email: str) -> None:
        """Set a person's e-mail address at the provider."""
        self._tables.run("UPDATE person SET email = ? WHERE id = ?", (email, person_id))

    def set_subject(self, person_id: str, issuer: str, subject: str) -> None:
        """Set a person's subject at a provider."""
        self._tables.run("UPDATE person SET issuer = ?, subject = ? WHERE id = ?", (issuer, subject, person_id))

    def find_by_email(self, email: str) -> Person | None:
        """Return the person with an e-mail address at the provider."""
        return self._find_person("email = ?", (email,))

    def find_by_subject(self, issuer: str, subject: str) -> Person | None:
        """Return the person with a subject at a provider; earlier versions also stored it without the issuer."""
        return self._find_person("issuer IN (?, '') AND subject = ? ORDER BY issuer DESC", (issuer, subject))

    def _find_person(self, which: str, values: tuple[str, ...]) -> Person | None:
        return self._tables.find_row(Person, f"{_PERSON} AND {which}", values)

    def list_identifiers(self) -> dict[str, tuple[str | None, str | None]]:
        """Return the e-mail address and the subject at the provider by person."""
        rows = self._tables.query("SELECT id, email, subject FROM person")
        return {person_id: (email, subject) for person_id, email, subject in rows}

    def sign_out(self, person_id: str, at: str) -> None:
        """End all browser sessions of a person."""
        self._tables.run("UPDATE person SET signed_out_at = ? WHERE id = ?", (at, person_id))

    # Roles

    def grant(self, person_id: str, workspace: str, role: Role) -> None:
        """Give a person a role in a workspace, replacing an earlier one."""
        self._tables.run(
            "INSERT INTO workspace_grant (person, workspace, role) VALUES (?, ?, ?) "
            "ON CONFLICT (person, workspace) DO UPDATE SET role = excluded.role",
            (person_id, workspace, role),
        )

    def ungrant(self, person_id: str, workspace: str) -> bool:
        """Remove a person's role in a workspace; return whether there was one."""
        forgotten = "DELETE FROM workspace_grant WHERE person = ? AND workspace = ?"
        return self._tables.run(forgotten, (person_id, workspace)) > 0

    def list_grants(self) -> list[tuple[str, str, Role]]:
        """List (person, workspace, role), by person and workspace."""
        rows = self._tables.query("SELECT person, workspace, role FROM workspace_grant ORDER BY person, workspace")
        return [(person, workspace, Role(role)) for person, workspace, role in rows]

    # Access log

    def add_accesses(self, entries: Sequence[AccessEntry]) -> None:
        """Store access log entries."""
        with self._tables.write() as db:
            _ENTRIES.store(db, (replace(entry, memory_ids=entry.memory_ids[:MAX_IDS_PER_ENTRY]) for entry in entries))

    def prune_accesses(self, before: str, max_rows: int = MAX_LOG_ROWS) -> None:
        """Delete access log entries before a time, and the oldest entries beyond the maximum number."""
        self._tables.run(
            "DELETE FROM access WHERE at < ? OR seq <= (SELECT max(seq) FROM access) - ?", (before, max_rows)
        )

    def list_accesses(self, query: AccessQuery, limit: int, before: int | None) -> list[AccessEntry]:
        """List access log entries, the latest first, below a row number."""
        where, values = join_conditions(
            {"person = ?": query.person, "workspace = ?": query.workspace, "at >= ?": query.since, "seq < ?": before}
        )
        with self._tables.read() as db:
            return _ENTRIES.fetch(db, f"WHERE {where} ORDER BY seq DESC LIMIT ?", (*values, limit))


def read_content(db: Connection) -> Content:
    """Return the rows of people, tokens without their last use, and roles; no people if the first list is empty."""
    return [db.execute(select).fetchall() for select in _CONTENT]


def count(db: Connection) -> int:
    """Count the people who were not removed."""
    return int(db.execute("SELECT count(*) FROM person WHERE removed_at IS NULL").fetchone()[0])


def remove(db: Connection, person_id: str, at: str) -> None:
    """Remove a person with their roles, and revoke their tokens."""
    db.execute("DELETE FROM workspace_grant WHERE person = ?", (person_id,))
    db.execute("UPDATE token SET revoked_at = ? WHERE person = ? AND revoked_at IS NULL", (at, person_id))
    db.execute("UPDATE person SET removed_at = ?, is_admin = 0 WHERE id = ?", (at, person_id))


# Rows of people with their removal and their sign-out, and of revoked tokens.
Revocations = tuple[list[tuple[str | None, ...]], list[tuple[str | None, ...]]]


def list_revocations(db: Connection) -> Revocations:
    """List removals, sign-outs and revocations, for `carry_revocations`."""
    revoked_people = db.execute(
        "SELECT id, name, added_at, removed_at, signed_out_at FROM person WHERE removed_at IS NOT NULL "
        "OR signed_out_at IS NOT NULL OR id IN (SELECT person FROM token WHERE revoked_at IS NOT NULL)"
    ).fetchall()
    return revoked_people, db.execute(f"SELECT {_TOKEN}, hash FROM token WHERE revoked_at IS NOT NULL").fetchall()  # noqa: S608


def carry_revocations(db: Connection, revocations: Revocations) -> None:
    """Repeat removals, sign-outs and revocations after older rows were restored.

    This includes people and tokens that those do not contain: an even older copy must not undo later revocations.
    """
    for person_id, name, added_at, removed_at, signed_out_at in revocations[0]:
        db.execute(
            "INSERT INTO person (id, name, is_admin, added_at) VALUES (?, ?, 0, ?) ON CONFLICT (id) DO NOTHING",
            (person_id, name, added_at),
        )
        if signed_out_at is not None:
            db.execute(
                "UPDATE person SET signed_out_at = max(coalesce(signed_out_at, ''), ?) WHERE id = ?",
                (signed_out_at, person_id),
            )
        if person_id is not None and removed_at is not None:
            remove(db, person_id, removed_at)
    db.executemany(
        f"INSERT INTO token ({_TOKEN}, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?) "  # noqa: S608 - constant text
        "ON CONFLICT (id) DO UPDATE SET revoked_at = excluded.revoked_at",
        revocations[1],
    )


def _caller(rows: Sequence[tuple[Any, ...]]) -> Caller:
    token_id, _, person_id, name, is_admin, *_ = rows[0]
    roles = {workspace: Role(role) for *_, workspace, role in rows if role is not None}
    person = Person(person_id, name, bool(is_admin))
    return Caller(person, token_id, "admin" if person.is_admin else "person", roles)


TABLES = (
    Table("person", ("id",)),
    Table("token", ("id",)),
    Table("workspace_grant", ("person", "workspace"), has_workspace=True),
    Table("access", has_workspace=True),
)
