"""Nothing is stored of turns that real agent programs report as failed or interrupted."""

import os
import signal
import subprocess

import pytest

from config.operating_system import kill_group
from tests.hosts.conftest import DEADLINE_S
from tests.hosts.model_server import Fail, Say, Stall
from tests.support.stack import wait_until

pytestmark = pytest.mark.timeout(600)

RULE, ANSWER = "We use pnpm here, not npm", "I will use pnpm."


def run_interrupted(machine, prompt):
    """Interrupt the host while it waits for its model, as Ctrl-C does."""
    machine.model.expect(Stall())
    process = machine.start_host(prompt)
    wait_until("the model is asked", lambda: machine.model.requests, DEADLINE_S)
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        kill_group(process.pid)
        process.communicate()


# Nothing is stored of `claude -p` and `codex exec`: tests/unit/web/test_host_records.py has turns in their terminals.
@pytest.mark.parametrize("name", ["gemini", "opencode", "kilo", "pi", "cline"])
def test_a_turn_that_failed_or_was_interrupted_is_not_stored(machine, name):
    machine.install(name)
    machine.remember({"content": "Something"})
    machine.model.expect(*[Fail()] * 10)
    machine.start_host("We deploy only on Fridays").communicate(timeout=DEADLINE_S)
    run_interrupted(machine, "Staging is on port 6543 now")
    machine.model.expect(Say(ANSWER))
    machine.ask(RULE, again=True)
    wait_until("the turn is stored", lambda: machine.list_said("user"), 60)
    assert machine.list_said("user") == [RULE]
    assert machine.list_said("assistant") == [ANSWER]
