"""Find the folder whose path an agent made a name from, by replacing all but letters and digits."""

import re
from collections.abc import Iterator
from pathlib import Path

from pipeline.transcripts.documents import list_folder

_OTHER = re.compile(r"[^A-Za-z0-9]+")
# A folder with more entries is not searched.
_MOST_TRIED = 3000


def find_folder(slug: str) -> str:
    """Return the only existing folder whose path has this name; empty if there is none, or more than one."""
    roots = [Path("/")]
    if slug[1:2] == "-":
        # A drive of Windows.
        roots.append(Path(f"{slug[0]}:/"))
    name = slug.strip("-").lower()
    found: list[Path] = []
    for root in roots:
        rest = name if root == Path("/") else name[2:]
        for folder in _search(root, rest):
            found.append(folder)
            if len(found) > 1:
                return ""
    return str(found[0]) if found else ""


def _search(folder: Path, rest: str) -> Iterator[Path]:
    if not rest:
        yield folder
        return
    for entry in list_folder(folder)[:_MOST_TRIED]:
        part = _OTHER.sub("-", entry.name).strip("-").lower()
        is_prefix = part and (rest == part or rest.startswith(f"{part}-"))
        if is_prefix and entry.is_dir():
            yield from _search(folder / entry.name, rest[len(part) + 1 :])
