import json
import subprocess
import sys
from pathlib import Path

from tests.support.skips import KEY, summarize

ROOT = Path(__file__).parents[2]


def keep(caches, kind, reasons):
    file = caches / kind / "v" / KEY
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(reasons))


def test_skipped_tests_are_summarized_by_kind_and_reason(tmp_path):
    keep(tmp_path, "unit", {})
    assert summarize(tmp_path) == "skipped: nothing"
    keep(tmp_path, "browser", {"no Chromium on this machine": 74})
    keep(tmp_path, "faults", {"no mount": 1, "not permitted": 2})
    assert summarize(tmp_path) == (
        "skipped: browser: 74 × no Chromium on this machine; faults: 1 × no mount, 2 × not permitted"
    )


def test_skipped_tests_are_recorded_and_cleared_by_the_next_run(tmp_path):
    (tmp_path / "conftest.py").write_text(
        "from tests.support.skips import note_skips\n\n"
        "def pytest_sessionfinish(session):\n    note_skips(session.config)\n"
    )
    test = tmp_path / "test_it.py"

    def run():
        command = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", str(tmp_path)]
        cache = ["-o", f"cache_dir={tmp_path / 'caches' / 'unit'}", "-p", "no:hypothesispytest", str(test)]
        done = subprocess.run([*command, *cache], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
        return summarize(tmp_path / "caches")

    test.write_text(
        "import pytest\n\n"
        "@pytest.mark.skipif(True, reason='no network')\ndef test_one(): ...\n\n"
        "def test_two():\n    pytest.skip('no network')\n\ndef test_three():\n    pytest.skip('no disk')\n"
    )
    assert run() == "skipped: unit: 2 × no network, 1 × no disk"
    test.write_text("def test_one(): ...\n")
    assert run() == "skipped: nothing"
