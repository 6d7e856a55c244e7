"""The wheel holds every file of the packages, and nothing beside them."""

import subprocess
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]
PACKAGES = ("config", "pipeline", "reverie", "workers", "web")


def test_wheel_contains_every_file_of_the_packages():
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "--", *PACKAGES],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("this is no checkout of a repository")
    files = {name for name in listed.stdout.splitlines() if (ROOT / name).exists()}
    # Other distributions install packages with the names of ours.
    expected = {name if name.startswith("reverie/") else f"reverie/{name}" for name in files}
    included = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    assert included == expected
    assert {Path(name).suffix for name in included} >= {".py", ".sql", ".toml", ".scm", ".txt", ".html", ".css", ".js"}
