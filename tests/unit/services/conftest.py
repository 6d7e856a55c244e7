import pytest

from tests.fakes.world import opened_world


@pytest.fixture
def world():
    with opened_world() as world:
        yield world
