"""Find the folders in which VS Code and editors made from it keep the data of their users."""

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from pipeline.transcripts.documents import load_document, read_file_uri
from pipeline.transcripts.fields import as_mapping
from pipeline.transcripts.reader import Places

VS_CODE = ("Code", "Code - Insiders", "VSCodium")
# Editors made from VS Code, in which its extensions run too.
EDITORS = (*VS_CODE, "Cursor", "Windsurf")


def list_user_folders(places: Places, editors: tuple[str, ...]) -> Iterator[Path]:
    """Yield the `User` folders of editors that were used on this machine."""
    if places.platform == "darwin":
        root = places.home / "Library/Application Support"
    elif places.platform == "win32":
        root = Path(places.environment.get("APPDATA") or places.home / "AppData/Roaming")
    else:
        root = Path(places.environment.get("XDG_CONFIG_HOME") or places.home / ".config")
    folders = (root / editor / "User" for editor in editors)
    return (folder for folder in folders if folder.is_dir())


@lru_cache(maxsize=256)
def find_workspace_folder(storage: Path) -> str:
    """Return the folder that a storage folder of a workspace belongs to; empty if it names none.

    For a workspace of several folders it is the folder of the workspace's file.
    """
    document, _ = load_document(storage / "workspace.json")
    content = as_mapping(document)
    if folder := read_file_uri(content.get("folder")):
        return folder
    workspace = read_file_uri(content.get("workspace"))
    return str(Path(workspace).parent) if workspace else ""
