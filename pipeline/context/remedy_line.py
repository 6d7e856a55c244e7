"""The line that reminds an agent of a remedy."""

from collections.abc import Sequence

from pipeline.context.quoting import quote
from pipeline.times import local_date


def render_remedy(steps: Sequence[tuple[bool, str]], at: str) -> str:
    """Return the line for a remedy's steps, each a command or an edited file, and the time when it worked.

    The steps are quoted, because a hostile project chooses its file names and its commands.
    """
    said = ", then ".join(f"{'editing ' if is_edit else ''}{quote(step)}" for is_edit, step in steps)
    return f"Seen before: this error was solved by {said} ({local_date(at)})."
