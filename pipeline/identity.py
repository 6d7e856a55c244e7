"""Which workspace a folder belongs to."""

import hashlib
import os
import re
from pathlib import Path

from pipeline.errors import FieldError, InvalidField

SLUG_CHARS = 48


def workspace_of_folder(folder: Path) -> str:
    """Return the workspace id of a folder: its git repository's root, else the folder itself, by name and path.

    Raises InvalidField for a path that cannot be followed.
    """
    try:
        resolved = folder.resolve()
        # Unlike Path.exists, this takes a place that may not be looked at for one that holds nothing.
        root = next((place for place in (resolved, *resolved.parents) if os.path.exists(place / ".git")), resolved)  # noqa: PTH110
    except (OSError, RuntimeError, ValueError) as error:
        raise InvalidField(FieldError("cwd", "is not a folder that can be looked at")) from error
    slug = re.sub(r"[^a-z0-9]+", "-", root.name.lower()).strip("-")[:SLUG_CHARS] or "root"
    return f"{slug}-{hashlib.sha256(os.fsencode(root)).hexdigest()[:8]}"
