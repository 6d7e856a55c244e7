import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Stands for Python, apt-get, id and timeout: notes what it is asked for, and brings a browser where it can.
PROGRAM = """#!/bin/sh
asked="$(basename "$0") $*"
case "$asked" in
    id*) echo 0 ;;
    timeout*) shift; exec "$@" ;;
    *tests.browser.chromium) [ -e "$BROUGHT" ] ;;
    *"$WORKS"*) echo "$asked" >> "$CALLS"; touch "$BROUGHT" ;;
    *) echo "$asked" >> "$CALLS"; exit 1 ;;
esac
"""


@pytest.fixture
def bring(tmp_path):
    """Run the script where one way works; return what was tried, and what was said."""
    for name in ("python", "apt-get", "id", "timeout"):
        (tmp_path / name).write_text(PROGRAM)
        (tmp_path / name).chmod(0o755)
    calls = tmp_path / "calls"
    calls.touch()

    def run(works, *, there=False):
        if there:
            (tmp_path / "brought").touch()
        environment = {
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "CALLS": str(calls),
            "BROUGHT": str(tmp_path / "brought"),
            "WORKS": works,
        }
        command = [str(ROOT / ".ci" / "browser"), str(tmp_path / "python")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return calls.read_text().splitlines(), done.stderr

    return run


def test_a_browser_that_is_there_is_taken(bring):
    assert bring("nothing", there=True) == ([], "")


def test_playwrights_own_comes_first(bring):
    calls, said = bring("playwright install")
    assert calls == ["python -m playwright install chromium"]
    assert "are skipped" not in said


def test_debians_is_taken_where_playwrights_cannot_be_had(bring):
    calls, said = bring("apt-get")
    assert calls[:2] == ["python -m playwright install chromium", "apt-get update -qq"]
    assert calls[2].startswith("apt-get install")
    assert "chromium" in calls[2]
    assert "are skipped" not in said


def test_without_any_the_tests_go_on_and_it_is_said(bring):
    _, said = bring("nothing")
    assert "Chromium could not be installed: the tests of the dashboard are skipped" in said
