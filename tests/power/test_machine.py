"""The model of everything that is promised agrees with the code, with both engines.

`make test-power` runs more examples (MACHINE_EXAMPLES), each time others.
"""

import os

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.power.machine import Machine

# How many examples of files; a server gets a fifth of them.
EXAMPLES = int(os.environ.get("MACHINE_EXAMPLES", "0"))

pytestmark = pytest.mark.timeout(0 if EXAMPLES else 180)


def run(machine, count, steps):
    chosen = settings(
        max_examples=count,
        stateful_step_count=steps,
        derandomize=not EXAMPLES,
        # Shrinking takes longer than reading the steps.
        phases=[Phase.explicit, Phase.generate],
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    machine.ran.clear()
    run_state_machine_as_test(machine, settings=chosen)
    print(", ".join(f"{count:,} {name}" for name, count in sorted(machine.ran.items())))


@pytest.mark.files
def test_every_promise_is_kept_in_files():
    run(Machine, EXAMPLES or 7, 30)


def test_every_promise_is_kept_on_a_server(postgres, ready_url):
    urls = []

    class OnServer(Machine):
        @staticmethod
        def find_urls():
            for url in urls:
                postgres.drop_database(url)
            urls[:] = [postgres.make_database(ready_url) for _ in range(2)]
            return urls[0], urls[1]

    run(OnServer, EXAMPLES // 5 or 2, 12)
