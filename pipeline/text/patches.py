"""Name the files that a patch changes."""

import re

# Maximum number of files that are read from a patch.
MOST_FILES = 200
_FILE = re.compile(
    r"^[^\S\n]*\*\*\* (?:(?:Add|Update|Delete) File|Move to): (?P<named>[^\n]+)$"
    r"|^(?:---|\+\+\+) (?:[ab]/)?(?P<diffed>[^\t\n]+)",
    re.MULTILINE,
)


def list_patch_files(patch: str) -> list[str]:
    """List the files that a patch adds, updates, deletes or moves, in the form of Codex or of diff."""
    files = ((match["named"] or match["diffed"]).strip() for match in _FILE.finditer(patch))
    return list(dict.fromkeys(file for file in files if file and file != "/dev/null"))[:MOST_FILES]
