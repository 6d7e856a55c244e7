"""Which workspace a folder belongs to."""

import hashlib
import re
from pathlib import Path

SLUG_CHARS = 48


def workspace_of_folder(folder: Path) -> str:
    """Return the workspace id of a folder: its git repository's root, else the folder itself, by name and path."""
    resolved = folder.resolve()
    root = next((place for place in (resolved, *resolved.parents) if (place / ".git").exists()), resolved)
    slug = re.sub(r"[^a-z0-9]+", "-", root.name.lower()).strip("-")[:SLUG_CHARS] or "root"
    return f"{slug}-{hashlib.sha256(str(root).encode()).hexdigest()[:8]}"
