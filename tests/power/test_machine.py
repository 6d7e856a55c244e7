"""The model of everything that is promised agrees with the code, on both engines."""

import pytest
from hypothesis import HealthCheck, Phase
from hypothesis.stateful import run_state_machine_as_test

from tests.fakes.properties import examples
from tests.power.machine import Machine

import os
STEPS = 40
COUNT=int(os.environ.get('MC','6'))


def run(machine, count):
    settings = examples(count, stateful_step_count=STEPS, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate] if os.environ.get('MC') else list(Phase), suppress_health_check=list(HealthCheck))
    machine.ran.clear()
    run_state_machine_as_test(machine, settings=settings)
    print(machine.ran)


@pytest.mark.files
def test_every_promise_is_kept_in_files():
    run(Machine, COUNT)


def test_every_promise_is_kept_on_a_server(postgres, ready_url):
    urls = []

    class OnServer(Machine):
        def find_urls():
            urls.extend(postgres.make_database(ready_url) for _ in range(2))
            return urls[-2], urls[-1]

    run(OnServer, 2)
