"""Homes with the memories of other tools, built from `tests/data/native`."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

DATA = Path(__file__).parents[1] / "data" / "native"
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def make_project(home: Path) -> Path:
    """Make a Git project in a user's home."""
    project = home / "tea-shop"
    for name in ("objects", "refs"):
        (project / ".git" / name).mkdir(parents=True)
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return project


def place_memories(tool: str, home: Path, project: Path) -> None:
    """Write the files of a tool; a file of SQL becomes a database."""
    slug = re.sub(r"[^A-Za-z0-9]", "-", str(project))
    values = {"project": str(project), "name": project.name, "slug": slug, "secret": SECRET}
    for file in sorted((DATA / tool).rglob("*")):
        if not file.is_file():
            continue
        part, *names = file.relative_to(DATA / tool).parts
        target = (home if part == "home" else project).joinpath(*(_fill(name, values) for name in names))
        target.parent.mkdir(parents=True, exist_ok=True)
        text = _fill(file.read_text(encoding="utf-8"), values)
        if target.suffix == ".sql":
            with closing(sqlite3.connect(target.with_suffix(""))) as db:
                db.executescript(text)
        else:
            target.write_text(text, encoding="utf-8")


def _fill(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text
