"""Files of SQL statements, separated by blank lines."""

from importlib.resources import files
from sqlite3 import Connection


def run_script(db: Connection, name: str) -> None:
    """Execute the statements of a file within the current transaction."""
    # Not as a script of SQLite, which would commit the transaction.
    for statement in files(__package__).joinpath(name).read_text(encoding="utf-8").split("\n\n"):
        db.execute(statement)
