import sys
from pathlib import Path

import pytest

from benchmarks.peer_process import Peer, PeerFailedError, daemon


@pytest.fixture
def broken_python(tmp_path):
    """Return a Python that says why it ends, with status 3."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'no module named pmb' >&2\nexit 3\n")
    python.chmod(0o755)
    return python


def test_a_daemon_that_does_not_start_is_reported_with_its_status_and_log(tmp_path, broken_python):
    home = tmp_path / "peer"
    with (
        pytest.raises(PeerFailedError, match=r"(?s)stopped before.*status 3.*no module named pmb"),
        daemon(broken_python, home, "default", 1),
    ):
        pytest.fail("the daemon cannot be warm")


def test_a_peer_that_stops_is_reported_with_the_command_status_and_log(tmp_path, broken_python):
    with (
        Peer(broken_python, tmp_path / "peer", tmp_path) as peer,
        pytest.raises(PeerFailedError, match=r"(?s)stopped at `open`.*status 3.*no module named pmb"),
    ):
        peer.open("default")


def test_the_peer_imports_its_own_packages_and_no_module_of_the_benchmarks(tmp_path, monkeypatch):
    # There is a benchmarks/mcp.py, too.
    package = tmp_path / "packages" / "pmb" / "mcp"
    package.mkdir(parents=True)
    (package / "daemon.py").write_text("import mcp\n")
    (tmp_path / "packages" / "mcp.py").write_text("raise SystemExit('the package mcp')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))
    with (
        pytest.raises(PeerFailedError, match="the package mcp"),
        daemon(Path(sys.executable), tmp_path / "peer", "default", 1),
    ):
        pytest.fail("the daemon cannot be warm")
