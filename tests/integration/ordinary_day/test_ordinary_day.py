"""Three working days of a developer, step by step, against a complete stack."""

import pytest

from tests.integration.ordinary_day.report import describe, play_days
from tests.integration.ordinary_day.steps import read_steps
from tests.support.clock import has_compiler

pytestmark = [
    # The first test plays all days.
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not has_compiler(), reason="there is no C compiler to shift the time of day with"),
]

TOPICS = sorted({step.topic for step in read_steps()})


@pytest.fixture(scope="module")
def days(models, tmp_path_factory):
    return play_days(tmp_path_factory.mktemp("days"), models)


@pytest.mark.parametrize("topic", TOPICS)
def test_ordinary_day_steps_store_show_and_hide_expected_memories(days, topic):
    failures = days.of_topic(topic)
    assert not failures, "\n".join(line for failure in failures for line in describe(failure))
