"""Change the scope of a memory when it is shared or withdrawn."""

from sqlite3 import Connection

from pipeline.records import Scope
from pipeline.store import row_hashes


def rescope(db: Connection, seq: int, scope: Scope, shared_from: str | None, at: str) -> None:
    """Change the scope of a memory; `shared_from` is its scope before it was shared."""
    db.execute(
        "UPDATE memory SET scope_kind = ?, scope_id = ?, shared_from = ?, updated_at = ? WHERE seq = ?",
        (scope.kind, scope.id or "", shared_from, at, seq),
    )
    row_hashes.update_on_commit(db, seq)
