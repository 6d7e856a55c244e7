import subprocess
import sys

import psutil
import pytest

from config import operating_system
from tests.support.stack import wait_until


@pytest.mark.parametrize("posix", [True, False])
def test_a_process_and_all_that_it_started_can_be_ended(monkeypatch, posix):
    monkeypatch.setattr(operating_system, "POSIX", posix)
    inner = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE).wait()"
    process = subprocess.Popen([sys.executable, "-c", inner], process_group=0)
    wait_until("the grandchild is there", lambda: psutil.Process(process.pid).children())
    [child] = psutil.Process(process.pid).children()
    operating_system.kill_group(process.pid)
    process.wait()
    wait_until("it is gone", lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
    # Whoever is gone is fine.
    operating_system.kill_group(process.pid)
    operating_system.kill_process(process.pid)
