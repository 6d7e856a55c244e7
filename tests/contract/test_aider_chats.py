"""A chat of aider that came with a repository is not the person's."""

import os
import subprocess
import time
from datetime import UTC, datetime

import pytest

from pipeline.sessions.readers.aider import Reader
from pipeline.sessions.readers.reader import Said, TranscriptFile
from pipeline.sessions.readers.session_log import LeftOut

HISTORY = ".aider.chat.history.md"
RULE = "From now on we push through the mirror."
LONG_AGO = 0.0
WHO = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com", "-c", "protocol.file.allow=always")


def git(folder, *words):
    subprocess.run(["git", "-C", str(folder), *WHO, *words], check=True, capture_output=True)


def write_chat(folder, text=RULE, started=None):
    moment = datetime.fromtimestamp(time.time() if started is None else started, UTC).astimezone()
    path = folder / HISTORY
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(f"\n# aider chat started at {moment:%Y-%m-%d %H:%M:%S}\n\n#### {text}  \n\nFine.\n")
    return path


def read(path, modified=None):
    status = path.stat()
    file = TranscriptFile("aider", path, status.st_size, status.st_mtime if modified is None else modified)
    return list(Reader().read(file, None))


def words(parts, role="user"):
    return [entry.content for part in parts for entry in part.entries if isinstance(entry, Said) and entry.role == role]


def count_left_out(parts):
    return sum(part.left_out[LeftOut.REPOSITORY] for part in parts)


@pytest.fixture
def origin(tmp_path):
    """Return a repository that tracks a chat, and many other files."""
    folder = tmp_path / "origin"
    folder.mkdir()
    git(folder, "init", "-q")
    write_chat(folder)
    for name in (".aider.chat.history.m", ".aider.chat.history.md.txt", "a", "docs/b", "docs/\u00e9", "z" * 200):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("x", encoding="utf-8")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "Start")
    return folder


def clone(origin, *options):
    folder = origin.parent / "clone"
    git(origin, "clone", "-q", *options, str(origin), str(folder))
    return folder


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_a_chat_that_git_tracks_is_left_out(origin, version):
    folder = clone(origin)
    git(folder, "update-index", "--index-version", version)
    if version == "3":
        (folder / "new").write_text("x", encoding="utf-8")
        git(folder, "add", "-N", "new")
    parts = read(folder / HISTORY)
    assert (words(parts), count_left_out(parts)) == ([], 1)
    # Also what was added to it.
    write_chat(folder, "use tabs")
    assert words(read(folder / HISTORY)) == []


def test_a_tracked_chat_is_found_in_every_form_of_a_checkout(origin):
    git(origin, "update-index", "--split-index")
    assert words(read(origin / HISTORY)) == []
    git(origin, "worktree", "add", "-q", "../tree")
    assert words(read(origin.parent / "tree" / HISTORY)) == []
    outer = origin.parent / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "submodule", "add", "-q", str(origin), "inner")
    assert words(read(outer / "inner" / HISTORY)) == []


def test_a_tracked_chat_in_a_folder_or_with_longer_hashes_is_left_out(tmp_path):
    git(tmp_path, "init", "-q", "--object-format=sha256")
    chat = write_chat(tmp_path / "examples/first")
    (tmp_path / "a").write_text("x", encoding="utf-8")
    git(tmp_path, "add", "-A")
    assert words(read(chat)) == []


def test_a_chat_that_git_does_not_track_is_read(origin):
    folder = clone(origin)
    git(folder, "rm", "-q", "--cached", HISTORY)
    (folder / HISTORY).unlink()
    # The same name in another folder is another file.
    write_chat(folder / "docs")
    git(folder, "add", "-f", f"docs/{HISTORY}")
    parts = read(write_chat(folder, "use tabs"))
    assert (words(parts), count_left_out(parts)) == (["use tabs"], 0)


def test_sessions_before_the_clone_are_left_out(origin):
    folder = clone(origin)
    git(folder, "rm", "-q", "--cached", HISTORY)
    (folder / HISTORY).unlink()
    write_chat(folder, started=time.time() - 86_400)
    write_chat(folder, started=time.time() - 80_000)
    parts = read(write_chat(folder, "use tabs", time.time() + 5))
    assert (words(parts), count_left_out(parts)) == (["use tabs"], 2)
    os.utime(folder / HISTORY, (time.time() - 86_400,) * 2)
    assert words(read(folder / HISTORY)) == []


def test_a_chat_without_a_clone_is_read_from_its_start(tmp_path):
    chat = write_chat(tmp_path / "plain", "use tabs", time.time() - 86_400)
    assert words(read(chat)) == ["use tabs"]
    git(chat.parent, "init", "-q")
    assert words(read(chat)) == ["use tabs"]


@pytest.mark.parametrize(
    "content", [b"", b"DIRC", b"DIRC\0\0\0\x09\0\0\0\x01", b"DIRC\0\0\0\x02\xff\xff\xff\xff", b"x" * 50]
)
def test_a_chat_next_to_a_damaged_index_is_left_out(tmp_path, content):
    git(tmp_path, "init", "-q")
    (tmp_path / ".git/index").write_bytes(content)
    assert words(read(write_chat(tmp_path))) == []


BLOCK = "a.py\n```python\n<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n```\n"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (f"Here:\n\n{BLOCK}\nDone.", "Here:\n\nDone."),
        (f"{BLOCK}{BLOCK}Done.", "Done."),
        ("```\na.py\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n```\nDone.", "Done."),
        ("<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE", "<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE"),
        ("```\n<<<<<<< SEARCH\nx\n=======\ny", "```\n<<<<<<< SEARCH\nx\n=======\ny"),
    ],
)
def test_blocks_that_replace_text_are_not_said(tmp_path, answer, said):
    chat = write_chat(tmp_path)
    chat.write_text(chat.read_text(encoding="utf-8").replace("Fine.", answer), encoding="utf-8")
    assert words(read(chat, LONG_AGO), "assistant") == [said]
