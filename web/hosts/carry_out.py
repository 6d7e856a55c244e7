"""Carrying a plan out: file by file, each whole or not at all."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from web.hosts import files, ledger
from web.hosts.plan import Change
from web.hosts.problems import CannotEdit


def carry_out(changes: Sequence[Change], root: Path) -> list[Change]:
    """Make the changes and keep the ledger under `root`; what failed comes back with its error."""
    return [change if change.error is not None else _carried_out(change, root) for change in changes]


def _carried_out(change: Change, root: Path) -> Change:
    records = ledger.read(root)
    known = records.get(str(change.path))
    try:
        _check_unchanged(change)
        # A record goes before the file and stays until it is gone: a file that was made is never without one.
        if change.record is not None and change.record != known:
            ledger.write(root, _with(records, change.path, change.record))
        try:
            _write(change)
        except OSError:
            ledger.write(root, records)
            raise
        if change.record is None and known is not None:
            ledger.write(root, _with(records, change.path, None))
    except CannotEdit as error:
        return replace(change, error=str(error))
    except OSError as error:
        return replace(change, error=f"it cannot be written: {error.strerror}")
    return change


def _check_unchanged(change: Change) -> None:
    if files.read(change.path) != change.before:
        raise CannotEdit("it has changed meanwhile; run the setup again")


def _write(change: Change) -> None:
    if change.action == "none":
        return
    if change.after is None:
        files.delete(change.path, change.folders)
    else:
        files.write_atomically(change.path, change.after, mode=change.mode)


def _with(records: Mapping[str, ledger.Record], path: Path, record: ledger.Record | None) -> dict[str, ledger.Record]:
    kept = {file: other for file, other in records.items() if file != str(path)}
    return kept if record is None else kept | {str(path): record}
