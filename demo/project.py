"""The project folder of the sample's developer, with the files that the sessions edited."""

from collections.abc import Sequence
from pathlib import Path

from demo.sample import Session

REMOTE = "https://git.example/larder/larder-api.git"
CONFIG = f'[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote "origin"]\n\turl = {REMOTE}\n'


def make_project(folder: Path, sessions: Sequence[Session]) -> Path:
    """Make a Git repository without commits, which needs no git, and an empty file for each path."""
    for name in ("objects", "refs/heads"):
        (folder / ".git" / name).mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    (folder / ".git" / "config").write_text(CONFIG, encoding="utf-8")
    for path in (text for session in sessions for kind, text, *_ in session.entries if kind == "edit"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).touch()
    return folder
