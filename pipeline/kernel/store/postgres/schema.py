"""The schema on the server as numbered migrations, by which each version of Reverie recognizes the others.

Pending migrations run in one transaction, without concurrent writes: every write takes a shared lock on the schema.
"""

from importlib.resources import files

from pipeline.kernel.errors import StoreUnavailable
from pipeline.kernel.store.postgres.connection import PostgresConnection

# A migration's name and its files. Released migrations never change.
MIGRATIONS: dict[str, tuple[str, ...]] = {"s001_tables": ("functions.sql", "schema.sql")}
KNOWN = ",".join(MIGRATIONS)
# Writes share this lock; a migration takes it exclusively.
LOCK_SCHEMA = "pg_advisory_xact_lock_shared(7077, 34)"
_TAKE_SCHEMA = "SELECT pg_advisory_xact_lock(7077, 34)"
LIST_APPLIED = "SELECT coalesce(string_agg(name, ',' ORDER BY name), '') FROM migration"


def make_ready(connection: PostgresConnection) -> None:
    """Apply pending migrations, once among several processes; raise StoreUnavailable for another schema."""
    if _list_applied(connection) == KNOWN:
        return
    connection.execute("BEGIN")
    try:
        connection.execute(_TAKE_SCHEMA)
        applied = _list_applied(connection)
        check_applied(applied)
        if not applied:
            connection.execute('CREATE TABLE IF NOT EXISTS migration (name TEXT COLLATE "C" PRIMARY KEY)')
        for name, scripts in MIGRATIONS.items():
            if name not in applied.split(","):
                for script in scripts:
                    connection.run_script(files(__package__).joinpath(script).read_text(encoding="utf-8"))
                connection.execute("INSERT INTO migration VALUES (?)", (name,))
        connection.execute("COMMIT")
    finally:
        connection.roll_back()


def check_applied(applied: str) -> None:
    """Raise StoreUnavailable if another version changed the store: this version's data might not fit."""
    unknown = sorted(set(applied.split(",")) - MIGRATIONS.keys() - {""})
    if unknown:
        raise StoreUnavailable(
            f"the store was changed by another version of Reverie ({', '.join(unknown)}). Install that version here, "
            "too"
        )


def _list_applied(connection: PostgresConnection) -> str:
    (is_there,) = connection.run_script("SELECT to_regclass('migration') IS NOT NULL")
    return str(connection.run_script(LIST_APPLIED)[0]) if is_there else ""
