"""The version after this one, so that what this one left can be opened by it."""

import contextlib
from collections.abc import Iterator

from sqlite_utils import Database

from pipeline.kernel.store.migrations import MIGRATIONS


def s999_next_version(db: Database) -> None:
    db.execute("CREATE TABLE next_version (x)")
    db.execute("ALTER TABLE memory ADD COLUMN next_field TEXT")


@contextlib.contextmanager
def next_version() -> Iterator[None]:
    """Let the schema have one migration more."""
    known = len(MIGRATIONS._migrations)
    MIGRATIONS()(s999_next_version)
    try:
        yield
    finally:
        del MIGRATIONS._migrations[known:]
