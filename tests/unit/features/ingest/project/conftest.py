from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from textwrap import dedent

import pytest

from pipeline.features.ingest.fields import Item, Reading, Skipped
from pipeline.features.ingest.project import read_project
from pipeline.features.ingest.project.describe import describe_file
from pipeline.features.ingest.project.imports import ProjectTree


class Project:
    """A folder of files and what the reader makes of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.progress: list[tuple[int, int]] = []

    def write(self, files: Mapping[str, str | bytes]) -> "Project":
        for name, content in files.items():
            place = self.root / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content if isinstance(content, bytes) else dedent(content).lstrip("\n").encode())
        return self

    def read(self, known: Mapping[str, str] | None = None) -> list[Reading]:
        self.progress.clear()
        describe = partial(describe_file, tree=ProjectTree(self.root.resolve()))
        return list(read_project(self.root, known or {}, self._note_progress, describe))

    def _note_progress(self, done: int, total: int) -> None:
        self.progress.append((done, total))

    def items(self) -> dict[str, Item]:
        return {one.key: one for one in self.read() if isinstance(one, Item)}

    def list_skipped(self) -> dict[str, str]:
        return {one.key: one.reason for one in self.read() if isinstance(one, Skipped)}

    def read_lines(self, key: str) -> list[str]:
        """Return the lines of a file's memory, its parts one after another."""
        return "\n".join(draft.content for draft in self.items()[key].drafts).splitlines()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "project").mkdir()
    return Project(tmp_path / "project")


@pytest.fixture
def outline(project: Project) -> Callable[[str, str], list[str]]:
    """Return the lines of one source file's memory."""

    def lines(key: str, text: str) -> list[str]:
        return project.write({key: text}).read_lines(key)

    return lines
