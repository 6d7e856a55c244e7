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
        pytest.raises(PeerFailedError, match=r"(?s)not warm.*status 3.*no module named pmb"),
        daemon(broken_python, home, "default", 1),
    ):
        pytest.fail("the daemon cannot be warm")


def test_a_peer_that_stops_is_reported_with_the_command_status_and_log(tmp_path, broken_python):
    with (
        Peer(broken_python, tmp_path / "peer", tmp_path) as peer,
        pytest.raises(PeerFailedError, match=r"(?s)stopped at `open`.*status 3.*no module named pmb"),
    ):
        peer.open("default")
