"""Copy a workspace of a server to a SQLite file and back."""

from contextlib import closing
from pathlib import Path

from pipeline.errors import NO_WORKSPACE, NotFound
from pipeline.store import backup, driver, turns
from pipeline.store.copying import SqliteTables, copy, fingerprint
from pipeline.store.log_start import install_triggers
from pipeline.store.migrations import MIGRATIONS, writing_new_file
from pipeline.store.moves import Part, StoreLocation


def write_file(store: StoreLocation, part: Part, file: Path) -> None:
    """Copy a part into a new file, row by row; raise NotFound if it does not exist."""
    with writing_new_file(file, MIGRATIONS) as db, store.reading(part) as source:
        if source is None:
            raise NotFound(NO_WORKSPACE)
        copy(source, SqliteTables(db))
        install_triggers(db)
        # Turns are deleted within weeks, so they must not remain in a copy.
        turns.forget_all(db)


def read_file(file: Path, store: StoreLocation, part: Part) -> None:
    """Replace a part by the content of a file, row by row, in one transaction."""
    with store.reading(part) as there:
        before = None if there is None else fingerprint(there)
    with backup.typed_errors(file), closing(driver.connect(file)) as db, store.writing(part, before) as target:
        copy(SqliteTables(db), target)
