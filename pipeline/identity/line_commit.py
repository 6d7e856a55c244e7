"""Find the commit that last changed a line of a file, with `git blame`."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pipeline.errors import FieldError, InvalidField
from pipeline.identity.git import Git
from pipeline.times import utc_text

_FIELD = re.compile(r"^(author-time|summary) (.*)$", re.MULTILINE)
# Git's name for lines that are not committed.
_UNCOMMITTED = re.compile(r"^0{7,64} ")


@dataclass(frozen=True, slots=True)
class LineCommit:
    """A commit: its id, the time when it was written, and its subject."""

    id: str
    at: str
    subject: str


def find_line_commit(file: Path, line: int) -> LineCommit | None:
    """Return the commit that last changed a line, None if the line is not committed.

    Raises InvalidField if git does not know the file or the line.
    """
    if line < 1:
        raise InvalidField(FieldError("line", "must be 1 or more"))
    # Filters for conversion are programs, and a file of ignored commits is named by the configuration.
    safe = ("--no-textconv", "--ignore-revs-file=")
    answer = Git(file.parent).answer("blame", "--porcelain", *safe, "-L", f"{line},{line}", "--", file.name)
    fields = dict(_FIELD.findall(answer))
    if _UNCOMMITTED.match(answer) or "author-time" not in fields:
        return None
    at = utc_text(datetime.fromtimestamp(int(fields["author-time"]), UTC))
    return LineCommit(answer.split(" ", 1)[0], at, fields.get("summary", ""))
