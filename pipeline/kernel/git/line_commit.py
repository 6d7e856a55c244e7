"""Find the commit that last changed a line of a file.

Git sees only commits: it would convert a file of the work tree by filters, which are programs that a repository names.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pipeline.kernel.anchors import find_checkout
from pipeline.kernel.errors import FieldError, InvalidField
from pipeline.kernel.git.git import Git
from pipeline.kernel.git.repository import UnreadableFile, printable, read_bounded
from pipeline.kernel.times import utc_text

MAX_FILE_BYTES = 16 * 1024 * 1024
# Narrowed sections of a comparison; each needs time for its lines.
MAX_SECTIONS = 50
_FORMAT = "--format=%H %at %s"


@dataclass(frozen=True, slots=True)
class LineCommit:
    """A commit: its id, the time when it was written, and its subject."""

    id: str
    at: str
    subject: str


def locate_line(folder: Path, path: str, line: int | None) -> tuple[str, LineCommit | None]:
    """Return the path of a file in its git checkout, and the commit that last changed one of its lines."""
    file = (folder / path).absolute()
    checkout = find_checkout(str(file.parent))
    commit = None if line is None else find_line_commit(file, line)
    if checkout is None or not file.is_relative_to(checkout):
        return path, commit
    return file.relative_to(checkout).as_posix(), commit


def find_line_commit(file: Path, line: int) -> LineCommit | None:
    """Return the commit that last changed a line, None if the line is not committed.

    Raises InvalidField if git does not know the file or the line.
    """
    if line < 1:
        raise InvalidField(FieldError("line", "must be 1 or more"))
    git = Git(file.parent)
    try:
        now = _split(read_bounded(file, MAX_FILE_BYTES))
    except UnreadableFile as error:
        raise InvalidField(FieldError("path", str(error))) from error
    if line > len(now):
        raise InvalidField(FieldError("line", f"must be at most {len(now)}, the number of lines of the file"))
    if not git.list_paths("ls-files", "-z", "--", f":(literal){file.name}")[0]:
        raise InvalidField(FieldError("path", f"{printable(file.name)} is not tracked by git"))
    if not git.has_commits() or not git.list_paths("ls-tree", "-z", "--name-only", "HEAD", "--", file.name)[0]:
        # A new file that is only in the index.
        return None
    with git.output("cat-file", "blob", f"HEAD:./{file.name}") as stream:
        before = _split(stream.read(MAX_FILE_BYTES))
    committed = find_same_line(now, before, line)
    if committed is None:
        return None
    answer = git.answer("log", "-s", "--max-count=1", _FORMAT, f"-L{committed},{committed}:{file.name}", "HEAD")
    commit, at, *subject = answer.split(" ", 2)
    return LineCommit(commit, utc_text(datetime.fromtimestamp(int(at), UTC)), *subject)


def find_same_line(now: Sequence[bytes], before: Sequence[bytes], line: int) -> int | None:
    """Return the number that a line has in an earlier version of a file, None if it was added or changed since.

    Equal lines at both ends of a section match, and lines that occur once in both versions, in the same order.
    """
    position, start, end, start_before, end_before = line - 1, 0, len(now), 0, len(before)
    for _ in range(MAX_SECTIONS):
        while start < end and start_before < end_before and now[start] == before[start_before]:
            start, start_before = start + 1, start_before + 1
        if position < start:
            return position - start + start_before + 1
        while start < end and start_before < end_before and now[end - 1] == before[end_before - 1]:
            end, end_before = end - 1, end_before - 1
        if position >= end:
            return position - end + end_before + 1
        pairs = _pair_unique_lines(now[start:end], before[start_before:end_before])
        if not pairs:
            return None
        # Narrow the section to the pairs around the line; a pair at the line itself is its first line.
        above = [pair for pair in pairs if start + pair[0] <= position]
        if len(above) < len(pairs):
            below = pairs[len(above)]
            end, end_before = start + below[0], start_before + below[1]
        if above:
            start, start_before = start + above[-1][0], start_before + above[-1][1]
    return None


def _pair_unique_lines(now: Sequence[bytes], before: Sequence[bytes]) -> list[tuple[int, int]]:
    """Pair the positions of lines that occur once in both versions: the longest sequence that is in order in both."""
    counts, counts_before = Counter(now), Counter(before)
    positions = {text: position for position, text in enumerate(before) if counts_before[text] == 1}
    unique = ((position, text) for position, text in enumerate(now) if counts[text] == 1)
    pairs = [(position, positions[text]) for position, text in unique if text in positions]
    # For each length, the sequence of this length that ends at the smallest earlier position.
    ends: list[int] = []
    numbers: list[int] = []
    previous: list[int | None] = []
    for number, (_, position) in enumerate(pairs):
        length = bisect_left(ends, position)
        ends[length : length + 1] = [position]
        numbers[length : length + 1] = [number]
        previous.append(numbers[length - 1] if length else None)
    chain, last = [], numbers[-1] if numbers else None
    while last is not None:
        chain.append(pairs[last])
        last = previous[last]
    return chain[::-1]


def _split(data: bytes) -> list[bytes]:
    """Split a file into lines without their ends: git converts these by its settings."""
    return [text.removesuffix(b"\r") for text in data.removesuffix(b"\n").split(b"\n")] if data else []
