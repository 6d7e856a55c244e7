"""A stranger's file takes nothing down: each reader ends within seconds of processor time, and names what it skips."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.features.ingest.fields import Item, Skipped
from pipeline.features.ingest.project import describe, read_project

SIZE = 200_000
# Of all readings together; each of these files took more than that, or gigabytes, before.
SECONDS = 60


def fill(unit, before="", after=""):
    return before + unit * (SIZE // len(unit)) + after


# Issue 34, K2: found by an attack, no public report.
PROJECT = {
    "dotted/pyproject.toml": fill(".a", "a", " = 1"),
    "spaced/pyproject.toml": fill(" . 'a'", "a", " = 1"),
    "header/Cargo.toml": fill(".a", "[a", "]\n"),
    "quoted/Cargo.toml": fill('."a"', '["a"', "]\n"),
    "inline/pyproject.toml": fill("{a=", "a = "),
    "list/pyproject.toml": fill("[", "a = "),
    "tables/pyproject.toml": fill("[[a]]\n"),
    "nested/package.json": fill("[", '{"scripts": '),
    "objects/package.json": fill('{"a":', '{"scripts": '),
    "line/Makefile": fill("a"),
    "spaces/Makefile": fill(" ", "# ", "x\na:\n\tb\n"),
    "stars/Makefile": fill("*", "# ", "\na:\n\tb\n"),
    "line/justfile": fill("a"),
    "spaces/go.mod": fill(" ", "module a\n", "("),
    "word/go.mod": fill("a", "", " b c d"),
    "deep/pom.xml": fill("<a>", "<project>"),
    "bomb/pom.xml": '<!DOCTYPE a [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><project>&b;</project>',
    "tags/README.md": fill("<a "),
    "comments/README.md": fill("<!--"),
    "pictures/README.md": fill("!["),
    "links/README.md": fill("![a]("),
    "image/README.md": fill("<img "),
    "heading/README.md": fill(" ", "# a", "x"),
    "hashes/README.md": fill(" #", "# a", "x"),
    "fence/README.md": fill("``` a\n"),
    "front/README.md": fill("---\n"),
    "roles/a.py": fill(":a", '"""Text. ', '"""\nA = 1\n'),
    "links/a.py": fill("{@a ", '"""Text. ', '"""\nA = 1\n'),
    "stars/a.js": fill("*", "// ", "x\nfunction a() {}\n"),
    "parens/a.py": fill("("),
    "nested/a.rs": fill("fn a(){"),
    "nested/a.ts": fill("a<"),
    "template/a.js": fill("`${"),
}


@pytest.mark.timeout(600)
def test_every_file_of_a_hostile_project_is_read_or_named_with_a_reason(tmp_path):
    for key, text in PROJECT.items():
        place = tmp_path / key
        place.parent.mkdir(exist_ok=True)
        place.write_text(text)
    (tmp_path / "good.py").write_text("def pay(): ...\n")
    os.mkfifo(tmp_path / "pipe.py")
    program = """
import json, sys
from pathlib import Path
from pipeline.features.ingest.fields import Skipped
from pipeline.features.ingest.project import read_project
readings = read_project(Path(sys.argv[1]), {}, lambda *_: None)
print(json.dumps({one.key: one.reason if isinstance(one, Skipped) else "" for one in readings}))
"""

    def limit_time():
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    reader = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=limit_time,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    reasons = json.loads(reader.stdout)
    assert reasons.keys() == {*PROJECT, "good.py", "pipe.py"}
    assert reasons["good.py"] == ""
    assert reasons["pipe.py"] == "not a regular file"
    assert reasons["dotted/pyproject.toml"] == "a key of more than 20 parts"
    assert reasons["nested/package.json"] == "nested too deeply"
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < SECONDS


def describe_with(statement, monkeypatch):
    """Let the process of limited means run a statement in place of describing a file."""
    program = f"""
import sys
from pipeline.features.ingest.project import describe
def describe_file(key, *_):
    if key == "bad.py":
        {statement}
    return describe.Description("", [key])
describe.describe_file = describe_file
describe.serve()
"""
    monkeypatch.setattr(describe, "PROGRAM", program)
    monkeypatch.setattr(describe, "SECONDS", 1)


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("while True: pass", "takes more than 1 s or 1 GiB to read"),
        ("bytearray(2 << 30)", "needs too much memory to read"),
        ("import os; os.abort()", "takes more than 1 s or 1 GiB to read"),
        ("open('/dev/null', 'w').close(); sys.exit(3)", "takes more than 1 s or 1 GiB to read"),
    ],
)
def test_a_file_that_exceeds_the_limits_costs_only_itself(tmp_path, monkeypatch, statement, reason):
    describe_with(statement, monkeypatch)
    for name in ("a.py", "bad.py", "c.py"):
        (tmp_path / name).write_text("def pay(): ...\n")
    readings = list(read_project(tmp_path, {}, lambda *_: None))
    assert [one.key for one in readings if isinstance(one, Item)] == ["a.py", "c.py"]
    assert [one for one in readings if isinstance(one, Skipped)] == [Skipped("bad.py", reason)]


# Each of these took more than a minute for one of the units (issue 34, K10).
READ_PATH = """
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
from datetime import UTC, datetime
from pipeline.features.lessons.advice import read_message
from pipeline.prompt.code_names import read_code_names
from pipeline.text.excerpts import find_excerpt
from pipeline.features.ingest.front_matter import split_front_matter
from pipeline.recall.literal_matches import measure_run
from pipeline.recall.query import parse_query
from pipeline.text.sentences import split_sentences
from pipeline.text.tokens import memory_tokens
for unit in ("A. ", "No. ", "a.", "a/", "a.b/", "?", "`a", "a", " ", "_", "- a"):
    text = unit * (200_000 // len(unit)) + "x"
    split_sentences(text)
    read_code_names(text)
    read_message(text)
    find_excerpt(text, frozenset({"a"}), 200)
    parse_query(text, datetime.now(UTC))
    memory_tokens(text, "2024-01-01T00:00:00Z")
    split_front_matter(f"---\\n{text}\\n---\\n")
    split_front_matter(f"+++\\n{text}\\n+++\\n")
    measure_run("a" * 1500, "a" * 20_000, 0)
"""


@pytest.mark.timeout(600)
def test_prompt_and_memory_processing_is_linear_in_length():
    subprocess.run([sys.executable, "-c", READ_PATH], cwd=Path(__file__).parents[2], check=True)
