"""Find a file of a folder on this machine, and the commit of one of its lines; no store is read."""

from pathlib import Path

from pipeline.kernel.anchors import find_checkout
from pipeline.kernel.git.line_commit import LineCommit, find_line_commit


def locate_line(folder: Path, path: str, line: int | None) -> tuple[str, LineCommit | None]:
    """Return the path of a file in its git checkout, and the commit that last changed one of its lines."""
    file = (folder / path).absolute()
    checkout = find_checkout(str(file.parent))
    commit = None if line is None else find_line_commit(file, line)
    if checkout is None or not file.is_relative_to(checkout):
        return path, commit
    return file.relative_to(checkout).as_posix(), commit
