"""What git itself leaves out is what the walk leaves out."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pipeline.ingest.project.gitignore import Level, comparable, is_left_out, read_rules
from pipeline.ingest.project.walk import File, walk

NAMES = st.sampled_from(
    ["a", "b", "ab", "a.py", "b.log", "A", "é", "a b", "[a]", "!a", "#a", "a\\", "-", "a*", ".a", "b "]
)
PIECES = st.one_of(
    st.sampled_from(["a", "b", "ab", ".py", ".log", "A", "é", " ", "*", "?", "-", ".", "\t", "\\", "!", "#"]),
    st.sampled_from(
        ["\\a", "\\*", "\\ ", "\\[", "\\!", "\\#", "\\\\", "[ab]", "[!a]", "[^b]", "[a-c]", "[c-a]", "[]a]"]
    ),
    st.sampled_from(
        ["[[:alpha:]]", "[[:space:]b]", "[![:alnum:]]", "[[:nope:]]", "[\\]a]", "[a", "[-a]", "[a-]", "[[a]"]
    ),
    st.sampled_from(["[!-~]", "[+--]", "[a\\-z]", "[[:]", "[a/b]", "[!/]", "[^]", "[]-a]", "[[-a]", "[&&~~]"]),
)
SEGMENTS = st.one_of(st.lists(PIECES, min_size=1, max_size=3).map("".join), st.sampled_from(["*", "**", "***"]))


def is_relied_on(pattern: str) -> bool:
    """Tell whether stars stand alone; git's shortcut for a literal beginning reads `a**/b` as if they did."""
    return not any("**" in segment and segment.strip("*") for segment in pattern.lstrip("!").split("/"))


PATTERNS = st.builds(
    lambda negated, rooted, segments, end: f"{negated}{rooted}{'/'.join(segments)}{end}",
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(SEGMENTS, min_size=1, max_size=3),
    st.sampled_from(["", "", "/", " ", "\r", "//"]),
).filter(is_relied_on)
RULES = st.lists(PATTERNS, max_size=4).map("\n".join)
FILES = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
# A whole tree: files, and rules by the folder that they stand in.
TREES = st.tuples(
    st.sets(FILES, min_size=1, max_size=8), st.dictionaries(st.sampled_from(["", "a", "a/b", "b", "ab"]), RULES)
)


@pytest.fixture(scope="module")
def git() -> str:
    found = shutil.which("git")
    if found is None:
        pytest.skip("git is not installed")
    return found


def make_repository(folder: Path) -> None:
    for name in ("objects", "refs", "info"):
        (folder / ".git" / name).mkdir(parents=True)
    (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")


def make_tree(folder: Path, files: set[str], rules: dict[str, str]) -> None:
    for name in sorted(files, key=len, reverse=True):
        place = folder / name
        # What another name needs as a folder, or has as a file, stays so.
        if not place.exists() and not any(parent.is_file() for parent in place.parents):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text("")
    for name, text in rules.items():
        place = folder / name
        if not place.exists() and not any(parent.is_file() for parent in place.parents):
            place.mkdir(parents=True)
        if place.is_dir() and not (place / ".gitignore").exists():
            (place / ".gitignore").write_bytes(text.encode())


def left_by_git(git: str, folder: Path) -> list[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    command = [git, "ls-files", "-co", "--exclude-standard", "-z"]
    answer = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
    return sorted(os.fsdecode(name) for name in answer.stdout.split(b"\0") if name)


def left_by_us(folder: Path) -> list[str]:
    return sorted(found.key for found in walk(folder.resolve()) if isinstance(found, File))


@given(TREES, RULES)
@example(({"a/b", "a/ab", "b"}, {"": "a/**\n!a/b"}), "")
@example(({"a/b/a.py", "b/a.py"}, {"": "*\n!*/\n!*.py", "a": "b/"}), "")
@example(({"a/b.log"}, {"": "!a/"}), "*.log")
@example(({"a", "b"}, {"": "\ufeffa"}), "")
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_walk_agrees_with_git(git, tree, exclude):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_repository(folder)
        make_tree(folder, *tree)
        (folder / ".git/info/exclude").write_bytes(exclude.encode())
        assert left_by_us(folder) == left_by_git(git, folder)


@given(TREES, RULES)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_folder_within_a_repository_follows_the_rules_above_it(git, tree, exclude):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_repository(folder)
        make_tree(folder, *tree)
        (folder / ".git/info/exclude").write_bytes(exclude.encode())
        for below in (folder / "a", folder / "a/b"):
            # A folder that is left out itself was asked for all the same; git then names nothing in it.
            if below.is_dir() and (theirs := left_by_git(git, below)):
                assert left_by_us(below) == theirs


def test_many_stars_take_no_longer_than_one():
    rules = read_rules(b"*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b")
    assert not is_left_out("a" * 250, [Level(rules)], is_folder=False)
    assert is_left_out("a" * 250 + "b", [Level(rules)], is_folder=False)


def test_a_name_that_is_not_utf8_is_compared_by_its_bytes():
    rules = read_rules(b"caf\xe9*")
    assert is_left_out(comparable(os.fsdecode(b"caf\xe9.txt")), [Level(rules)], is_folder=False)
    assert not is_left_out(comparable("café.txt"), [Level(rules)], is_folder=False)


def test_what_git_passes_over_names_nothing():
    assert read_rules(b"# a\n\n   \n/\n!\n\\\n[a\n!/\nx//\n") == ()
