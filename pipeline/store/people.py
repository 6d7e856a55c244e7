"""The people who share a data directory: identities, token hashes, and roles per workspace."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any, Final

from pipeline.records.people import Caller, Person, Role
from pipeline.store import access_log
from pipeline.store.access_log import AccessEntry, AccessQuery
from pipeline.store.database import HomeTables


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


_TOKEN = "id, person, device, created_at, expires_at, last_used_at, revoked_at"  # noqa: S105 - names of columns


# The tables of a snapshot of people: all except the access log.
TABLES: Final = ("person", "token", "workspace_grant")
Content = list[list[tuple[Any, ...]]]
_CONTENT: Final = (
    "SELECT * FROM person ORDER BY id",
    "SELECT id, person, device, hash, created_at, expires_at, revoked_at FROM token ORDER BY id",
    "SELECT * FROM workspace_grant ORDER BY person, workspace",
)


class People:
    """The people of a data directory."""

    def __init__(self, tables: HomeTables, db: Connection | None = None) -> None:
        self._tables = tables
        # Within a transaction, which its opener commits.
        self._db = db
        self._exists = False

    @property
    def exists(self) -> bool:
        """Return whether a person was ever added."""
        if not self._exists:
            with self._read() as db:
                self._exists = db.execute("SELECT 1 FROM person LIMIT 1").fetchone() is not None
        return self._exists

    @contextmanager
    def transaction(self) -> Iterator["People"]:
        """Yield the people within one transaction: either all changes are stored, or none."""
        with self._write() as db:
            yield People(self._tables, db)

    def _read(self) -> AbstractContextManager[Connection]:
        return self._tables.read() if self._db is None else nullcontext(self._db)

    def _write(self) -> AbstractContextManager[Connection]:
        return self._tables.write() if self._db is None else nullcontext(self._db)

    # People

    def find(self, person_id: str) -> Person | None:
        """Return a person, unless they were removed."""
        return self._find_person("id = ?", (person_id,))

    def list_people(self) -> list[Person]:
        """List all people who were not removed, by id."""
        with self._read() as db:
            rows = db.execute("SELECT id, name, is_admin FROM person WHERE removed_at IS NULL ORDER BY id")
            return [Person(row[0], row[1], bool(row[2])) for row in rows]

    def list_ids(self) -> set[str]:
        """List all ids, including those of removed people."""
        with self._read() as db:
            return {row[0] for row in db.execute("SELECT id FROM person")}

    def add(self, person: Person, at: str) -> None:
        """Add a person."""
        with self._write() as db:
            db.execute(
                "INSERT INTO person (id, name, is_admin, added_at) VALUES (?, ?, ?, ?)",
                (person.id, person.name, int(person.is_admin), at),
            )

    def set_admin(self, person_id: str, *, is_admin: bool) -> None:
        """Grant or withdraw the admin role."""
        with self._write() as db:
            db.execute("UPDATE person SET is_admin = ? WHERE id = ?", (int(is_admin), person_id))

    def remove(self, person_id: str, at: str) -> None:
        """Remove a person with their roles, and revoke their tokens."""
        with self._write() as db:
            remove(db, person_id, at)

    # Tokens

    def add_token(self, token: Token, digest: str) -> None:
        """Add a token by its hash."""
        with self._write() as db:
            db.execute(
                "INSERT INTO token (id, person, device, hash, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?)",
                (token.id, token.person, token.device, digest, token.created_at, token.expires_at),
            )

    def list_tokens(self) -> list[Token]:
        """List all tokens of people who were not removed, the oldest first."""
        with self._read() as db:
            rows = db.execute(
                f"SELECT {_TOKEN} FROM token WHERE person IN (SELECT id FROM person WHERE removed_at IS NULL) "  # noqa: S608
                "ORDER BY created_at, id"
            )
            return [Token(*row) for row in rows]

    def revoke(self, token_ids: list[str], at: str) -> None:
        """Revoke tokens; they are rejected from the next request on."""
        with self._write() as db:
            db.executemany(
                "UPDATE token SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL",
                [(at, token_id) for token_id in token_ids],
            )

    def record_use(self, token_id: str, at: str) -> None:
        """Record the use of a token."""
        with self._write() as db:
            db.execute("UPDATE token SET last_used_at = ? WHERE id = ?", (at, token_id))

    def find_caller(self, digest: str, now: str) -> tuple[Caller, str | None] | None:
        """Return the holder of a token by its hash, and its last use; None for a token that is not valid now."""
        return self._find_holder("t.hash = ?", digest, now)

    def find_holder(self, token_id: str, now: str) -> Caller | None:
        """Return the holder of a token by its id; None for a token that is not valid now."""
        holder = self._find_holder("t.id = ?", token_id, now)
        return None if holder is None else holder[0]

    def _find_holder(self, which: str, named: str, now: str) -> tuple[Caller, str | None] | None:
        with self._read() as db:
            rows = db.execute(
                "SELECT t.id, t.last_used_at, p.id, p.name, p.is_admin, g.workspace, g.role FROM token t "  # noqa: S608 - constant text
                "JOIN person p ON p.id = t.person LEFT JOIN workspace_grant g ON g.person = p.id "
                f"WHERE {which} AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > ?) "
                "AND p.removed_at IS NULL",
                (named, now),
            ).fetchall()
            return (_caller(rows, rows[0][0]), rows[0][1]) if rows else None

    def find_signed_in(self, person_id: str, since: str) -> Caller | None:
        """Return a person's permissions in a browser that signed in at a time, None if they were signed out since.

        A person is signed out if they were removed or all their tokens were revoked.
        """
        with self._read() as db:
            rows = db.execute(
                "SELECT NULL, NULL, p.id, p.name, p.is_admin, g.workspace, g.role FROM person p "
                "LEFT JOIN workspace_grant g ON g.person = p.id WHERE p.id = ? AND p.removed_at IS NULL "
                "AND (p.signed_out_at IS NULL OR p.signed_out_at < ?)",
                (person_id, since),
            ).fetchall()
            return _caller(rows, None) if rows else None

    # Names at the OpenID Connect provider

    def set_email(self, person_id: str, email: str) -> None:
        """Set a person's e-mail address at the provider."""
        with self._write() as db:
            db.execute("UPDATE person SET email = ? WHERE id = ?", (email, person_id))

    def set_subject(self, person_id: str, issuer: str, subject: str) -> None:
        """Set a person's subject at a provider."""
        with self._write() as db:
            db.execute("UPDATE person SET issuer = ?, subject = ? WHERE id = ?", (issuer, subject, person_id))

    def find_by_email(self, email: str) -> Person | None:
        """Return the person with an e-mail address at the provider."""
        return self._find_person("email = ?", (email,))

    def find_by_subject(self, issuer: str, subject: str) -> Person | None:
        """Return the person with a subject at a provider; earlier versions also stored it without the issuer."""
        return self._find_person("issuer IN (?, '') AND subject = ? ORDER BY issuer DESC", (issuer, subject))

    def _find_person(self, which: str, values: tuple[str, ...]) -> Person | None:
        with self._read() as db:
            row = db.execute(
                f"SELECT id, name, is_admin FROM person WHERE removed_at IS NULL AND {which}",  # noqa: S608 - constant text
                values,
            ).fetchone()
            return Person(row[0], row[1], bool(row[2])) if row else None

    def list_identifiers(self) -> dict[str, tuple[str | None, str | None]]:
        """Return the e-mail address and the subject at the provider by person."""
        with self._read() as db:
            rows = db.execute("SELECT id, email, subject FROM person").fetchall()
            return {person_id: (email, subject) for person_id, email, subject in rows}

    def sign_out(self, person_id: str, at: str) -> None:
        """End all browser sessions of a person."""
        with self._write() as db:
            db.execute("UPDATE person SET signed_out_at = ? WHERE id = ?", (at, person_id))

    # Roles

    def grant(self, person_id: str, workspace: str, role: Role) -> None:
        """Give a person a role in a workspace, replacing an earlier one."""
        with self._write() as db:
            db.execute(
                "INSERT INTO workspace_grant (person, workspace, role) VALUES (?, ?, ?) "
                "ON CONFLICT (person, workspace) DO UPDATE SET role = excluded.role",
                (person_id, workspace, role),
            )

    def ungrant(self, person_id: str, workspace: str) -> bool:
        """Remove a person's role in a workspace; return whether there was one."""
        with self._write() as db:
            removed = db.execute(
                "DELETE FROM workspace_grant WHERE person = ? AND workspace = ? RETURNING workspace",
                (person_id, workspace),
            ).fetchall()
            return bool(removed)

    def list_grants(self) -> list[tuple[str, str, Role]]:
        """List (person, workspace, role), by person and workspace."""
        with self._read() as db:
            rows = db.execute("SELECT person, workspace, role FROM workspace_grant ORDER BY person, workspace")
            return [(row[0], row[1], Role(row[2])) for row in rows]

    # Access log

    def add_accesses(self, entries: Sequence[AccessEntry]) -> None:
        """Store access log entries."""
        with self._write() as db:
            access_log.add(db, entries)

    def prune_accesses(self, before: str) -> None:
        """Delete access log entries before a time, and entries beyond the maximum number."""
        with self._write() as db:
            access_log.prune(db, before)

    def list_accesses(self, query: AccessQuery, limit: int, before: int | None) -> list[AccessEntry]:
        """List access log entries, the latest first, below a row number."""
        with self._read() as db:
            return access_log.page(db, query, limit, before)


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


def _caller(rows: list[tuple[str | None, ...]], token_id: str | None) -> Caller:
    _, _, person_id, name, is_admin, *_ = rows[0]
    assert person_id is not None
    assert name is not None
    roles = {row[5]: Role(row[6]) for row in rows if row[5] is not None and row[6] is not None}
    person = Person(person_id, name, bool(is_admin))
    return Caller(person, token_id, "admin" if person.is_admin else "person", roles)
