"""What this machine knows about git branches: which branch a session is on, and which branches have memories.

These values are local: another machine has other checkouts, and learns of a merge from the changed memories.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from sqlite3 import Connection
from typing import Any

from pipeline.enums import ScopeKind
from pipeline.records import Memory, Scope
from pipeline.records.branches import KnownBranch, SideBranch
from pipeline.store import meta
from pipeline.store.memories import select

# The job that looks what became of the branches.
JOB = "branches"
# The older ones are forgotten.
MOST_SESSIONS, MOST_BRANCHES = 200, 500


def scope_of_branch(name: str) -> Scope:
    """Return the scope of the memories of a branch."""
    return Scope(ScopeKind.BRANCH, name)


def note_session(db: Connection, session_id: str, branch: SideBranch | None) -> bool:
    """Record the branch of a session, None for the default one; return whether it changed."""
    sessions = _read(db, meta.SESSION_BRANCHES)
    value = None if branch is None else asdict(branch)
    if sessions.get(session_id) == value:
        return False
    sessions.pop(session_id, None)
    if value is not None:
        sessions[session_id] = value
    meta.put(db, meta.SESSION_BRANCHES, json.dumps(dict(list(sessions.items())[-MOST_SESSIONS:])))
    return True


def find_session_branch(db: Connection, session_id: str | None) -> SideBranch | None:
    """Return the branch of a session; None on the default branch and for unknown sessions."""
    value = None if session_id is None else _read(db, meta.SESSION_BRANCHES).get(session_id)
    return None if value is None else SideBranch(**value)


def note_branch(db: Connection, branch: SideBranch) -> bool:
    """Record a branch that gets a memory; return whether this is news for the branches job.

    A branch that has other commits than when it was merged or deleted is open again.
    """
    known = read_known(db).get(branch.name)
    if known is not None and known.branch == branch:
        return False
    if known is None or known.branch.repository != branch.repository:
        known = KnownBranch(branch)
    put_known(db, replace(known, branch=branch))
    return True


def read_known(db: Connection) -> dict[str, KnownBranch]:
    """Return the known branches by name."""
    return {
        name: KnownBranch(SideBranch(**value.pop("branch")), **value)
        for name, value in _read(db, meta.KNOWN_BRANCHES).items()
    }


def put_known(db: Connection, known: KnownBranch) -> None:
    """Record what is known about a branch."""
    branches = _read(db, meta.KNOWN_BRANCHES)
    branches.pop(known.branch.name, None)
    branches[known.branch.name] = asdict(known)
    meta.put(db, meta.KNOWN_BRANCHES, json.dumps(dict(list(branches.items())[-MOST_BRANCHES:])))


def rename_known(db: Connection, name: str, known: KnownBranch, new_name: str) -> None:
    """Record the new name of a branch."""
    branches = _read(db, meta.KNOWN_BRANCHES)
    branches.pop(name, None)
    meta.put(db, meta.KNOWN_BRANCHES, json.dumps(branches))
    put_known(db, replace(known, branch=replace(known.branch, name=new_name)))


def list_branches_with_memories(db: Connection) -> list[str]:
    """List the branches that have memories which are not archived."""
    # SQLite uses the index of scopes only for a query that repeats its condition.
    rows = db.execute(
        f"SELECT DISTINCT scope_id FROM memory WHERE scope_kind <> '{ScopeKind.WORKSPACE}' "  # noqa: S608 - constant text
        "AND scope_kind = ? AND archived_at IS NULL ORDER BY scope_id",
        (ScopeKind.BRANCH,),
    )
    return [str(name) for (name,) in rows]


def list_memories_of(db: Connection, name: str, after: int, limit: int) -> list[Memory]:
    """List the memories of a branch that are not archived, above a row number."""
    return select(
        db,
        f"scope_kind <> '{ScopeKind.WORKSPACE}' AND scope_kind = ? AND scope_id = ? AND archived_at IS NULL "
        "AND seq > ? ORDER BY seq LIMIT ?",
        (ScopeKind.BRANCH, name, after, limit),
    )


def _read(db: Connection, key: str) -> dict[str, Any]:
    stored: Mapping[str, Any] = json.loads(meta.get(db, key) or "{}")
    return dict(stored)
