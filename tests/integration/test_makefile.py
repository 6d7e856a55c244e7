import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = """#!/bin/sh
echo "$@" >> "$CALLS"
case "$*" in
    "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
    *--dry-run*) echo "Would install $WOULD_INSTALL" ;;
esac
"""

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make on this machine")


@pytest.fixture
def install(tmp_path):
    """Run the installation with a Python and a pip that only note what they are asked for."""
    python = tmp_path / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    calls = tmp_path / "calls"

    def run(would_install, *variables):
        command = ["make", f"VENV={tmp_path}/venv", f"PYTHON={python}", *variables, f"{tmp_path}/venv/.runtime"]
        environment = os.environ | {"CALLS": str(calls), "WOULD_INSTALL": would_install}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
        return done.stdout, [line for line in calls.read_text().splitlines() if "--quiet" in line]

    return run


def test_where_pip_would_fetch_cuda_the_build_for_the_cpu_is_taken_first_and_said(install):
    said, installed = install("nvidia-cublas-13.1 torch-2.13.0 triton-3.7")
    assert "brings CUDA here" in said
    assert installed[0].endswith("--extra-index-url https://download.pytorch.org/whl/cpu torch==2.13.0+cpu")
    assert installed[1].endswith("-r requirements.lock")


def test_who_wants_what_pip_chooses_gets_it_and_is_told(install):
    said, installed = install("nvidia-cublas-13.1 torch-2.13.0", "TORCH_INDEX=")
    assert "brings CUDA here" in said
    assert not any("torch==" in line for line in installed)


def test_where_pip_chooses_a_build_for_the_cpu_nothing_is_said(install):
    said, installed = install("torch-2.13.0+cpu")
    assert "CUDA here" not in said.replace("echo", "")
    assert not any("torch==" in line for line in installed)


def test_what_only_tests_need_is_not_installed(install):
    _, installed = install("torch-2.13.0+cpu")
    assert not any("requirements-dev.lock" in line for line in installed)
