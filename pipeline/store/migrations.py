"""The schema of events.sqlite, as numbered migrations in the order of their numbers."""

import secrets
from importlib.resources import files

from sqlite_utils import Database, Migrations

MIGRATIONS = Migrations("reverie")


@MIGRATIONS()
def m001_schema(db: Database) -> None:
    """Create every table, and give this copy of the store its name among others."""
    schema = files("pipeline.store").joinpath("schema.sql").read_text(encoding="utf-8")
    # Not as a script, which would commit the transaction that all migrations share.
    for statement in schema.split(";\n"):
        db.execute(statement)
    db.execute("INSERT INTO meta VALUES ('node', ?)", [secrets.token_hex(4)])
