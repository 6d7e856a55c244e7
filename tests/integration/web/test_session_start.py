"""The one-file client that starts the stack: from wherever an agent happens to work."""

import os
import subprocess
import sys
from pathlib import Path

from web.hooks import session_start


def test_nothing_of_the_agents_folder_is_run(tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: started.append(command))
    # As where the program is not installed beside Python.
    monkeypatch.setattr(session_start.os.path, "isfile", lambda _: False)
    session_start.start({})
    monkeypatch.undo()
    [[*command, _up, _daemon]] = started
    (tmp_path / "web").mkdir()
    trap = tmp_path / "trap"
    for name in ("__init__.py", "cli.py"):
        (tmp_path / "web" / name).write_text(f"open({str(trap)!r}, 'w')\n")
    variables = os.environ | {"PYTHONPATH": str(Path.cwd())}
    told = subprocess.run([*command, "version"], cwd=tmp_path, env=variables, capture_output=True, check=False)
    assert not trap.exists()
    assert (command[0], told.returncode) == (sys.executable, 0)
