"""Request the jobs that compare memories with the repository when another commit is checked out."""

from pathlib import Path
from sqlite3 import Connection

from pipeline.anchors import find_checkout
from pipeline.identity.repository import head_of_folder
from pipeline.store import meta, runs

CHECK_JOB = "check"


def note_checkout(db: Connection, folder: str, at: str) -> None:
    """Record the checkout that contains a folder; at a new commit, request the jobs that read the repository."""
    checkout = find_checkout(folder)
    if checkout is None:
        return
    meta.note(db, meta.CHECKOUT, checkout)
    head = head_of_folder(Path(checkout))
    if head is not None and head != meta.get(db, meta.SEEN_HEAD):
        meta.put(db, meta.SEEN_HEAD, head)
        runs.request(db, CHECK_JOB, at)
