"""Data directories that earlier and present code wrote: one for each state of the file formats that may be in use."""

import json
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

import lancedb

FOLDER = Path(__file__).parents[1] / "data" / "homes"
# What a stack of this commit wrote, without vectors and models.
OLDEST = "d0a0c2d4"
# In the order of their formats.
NAMES = (OLDEST, "2026-11-30")
NEWEST = NAMES[-1]


def unpack_directory(name: str, folder: Path) -> Path:
    """Unpack a data directory into a folder and return the folder."""
    with tarfile.open(FOLDER / f"{name}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def describe_formats(home: Path) -> dict[str, Any]:
    """Return the form of each kind of file of a data directory, without its contents."""
    workspace = home / "workspaces" / "default"
    segment = json.loads(next(workspace.glob("lexical/*/manifest.json")).read_bytes())
    tables = lancedb.connect(workspace / "vectors.lance")
    codes = [file for file in workspace.rglob("*") if file.is_file() and file.read_bytes()[:13] == b"passage codes"]
    spooled = next(file for file in (home / "spool").iterdir() if file.is_file())
    return {
        "events.sqlite": _describe_tables(workspace / "events.sqlite"),
        "snapshot": _describe_tables(next(workspace.glob("snapshots/*.sqlite"))),
        "home.sqlite": _describe_tables(home / "home.sqlite"),
        "lexical segment": [segment["format"], sorted(segment["sizes"])],
        "vectors": str(tables.open_table("hash").schema),
        "codes": {str(file.relative_to(workspace)): file.read_bytes()[:16] for file in codes},
        "spooled request": sorted(json.loads(spooled.read_bytes())),
    }


def _describe_tables(file: Path) -> dict[str, str]:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as db:
        made = db.execute("SELECT name, sql FROM sqlite_master WHERE sql NOT NULL AND name NOT LIKE 'sqlite_%'")
        return {name: " ".join(sql.split()) for name, sql in made}
