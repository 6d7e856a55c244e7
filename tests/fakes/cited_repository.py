"""A repository to which tests commit files, and the state of what a text cites of it."""

import os
import subprocess
from pathlib import Path

from pipeline.features.citations.history import State
from pipeline.features.citations.parser import find_citations
from pipeline.features.citations.resolve import resolve_citations


class Repository:
    """A repository in which tests commit files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "--quiet")

    def git(self, *arguments: str) -> str:
        names = {
            f"GIT_{role}_{field}": "t@example.org" for role in ("AUTHOR", "COMMITTER") for field in ("NAME", "EMAIL")
        }
        command = ["git", "-C", str(self.root), *arguments]
        return subprocess.run(
            command, check=True, capture_output=True, text=True, env=os.environ | names
        ).stdout.strip()

    def commit(self, **files: str | None) -> str:
        for name, text in files.items():
            self.write(name, text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "change")
        return self.git("rev-parse", "HEAD")

    def write(self, name: str, text: str | None) -> None:
        file = self.root / name
        if text is None:
            file.unlink()
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")

    def states(self, text: str, *, are_files: bool = False) -> list[tuple[str, State, str | None]]:
        (findings,) = resolve_citations(self.root, [find_citations(text)], are_files=are_files)
        return [(item.citation.text, item.state, item.now) for item in findings]
