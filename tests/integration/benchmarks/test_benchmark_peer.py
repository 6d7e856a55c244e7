import json
import sys
from pathlib import Path

import pytest

from benchmarks.peer_process import Peer, PeerFailedError


def test_a_peer_that_stops_is_reported_with_the_command_status_and_log(tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'no module named pmb' >&2\nexit 3\n")
    python.chmod(0o755)
    with (
        Peer("pmb-ai", python, tmp_path / "peer", tmp_path) as peer,
        pytest.raises(PeerFailedError, match=r"(?s)stopped at `write`.*status 3.*no module named pmb"),
    ):
        peer.fill([MEMORY])


def test_the_peer_imports_its_own_packages_and_no_module_of_the_benchmarks(tmp_path, monkeypatch):
    # There is a benchmarks/mcp.py, too.
    package = tmp_path / "packages" / "pmb" / "core"
    package.mkdir(parents=True)
    (package / "engine.py").write_text("import mcp\n")
    (tmp_path / "packages" / "mcp.py").write_text("raise SystemExit('the package mcp')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))
    with (
        Peer("pmb-ai", Path(sys.executable), tmp_path / "peer", tmp_path) as peer,
        pytest.raises(PeerFailedError, match="the package mcp"),
    ):
        peer.fill([MEMORY])


def test_a_peer_answers_with_its_ids_and_the_time_of_each_question(tmp_path, monkeypatch):
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "mem0.py").write_text(MEM0)
    monkeypatch.setenv("PYTHONPATH", str(packages))
    with Peer("mem0ai", Path(sys.executable), tmp_path / "peer", tmp_path) as peer:
        ids = peer.fill([MEMORY, MEMORY | {"content": "the queue is in SQLite"}])
        answers = peer.recall(["SQLite", "port"], 10)
    assert answers.ids == [[ids[1]], [ids[0]]]
    assert len(answers.ms) == 2
    assert json.loads((tmp_path / "peer" / "config.json").read_text())["embedder"]["config"]["model"] == str(tmp_path)


MEMORY = {
    "content": "the port is 8080",
    "kind": "fact",
    "session_id": "s",
    "occurred_at": "2026-01-01T00:00:00+00:00",
}
MEM0 = """
import json, os, pathlib


class Memory:
    def __init__(self):
        self.texts = []

    @classmethod
    def from_config(cls, config):
        (pathlib.Path(os.environ["MEM0_DIR"]) / "config.json").write_text(json.dumps(config))
        print("noise")
        return cls()

    def add(self, text, user_id, infer):
        self.texts.append(text)
        return {"results": [{"id": f"m{len(self.texts)}"}]}

    def search(self, query, top_k, filters, threshold):
        return {"results": [{"id": f"m{n}"} for n, text in enumerate(self.texts, 1) if query in text]}
"""
