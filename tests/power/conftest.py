import tempfile
from pathlib import Path

import pytest

from tests.power.recording import build_recorder, find_obstacle, record_program
from tests.power.scenarios import SCENARIOS


@pytest.fixture(scope="session")
def recorder():
    """The library that records; tests are skipped where it cannot be built."""
    obstacle = find_obstacle()
    if obstacle:
        pytest.skip(obstacle)
    with tempfile.TemporaryDirectory(prefix="recorder-") as folder:
        yield build_recorder(Path(folder).resolve())


@pytest.fixture(scope="session")
def recorded(recorder, tmp_path_factory):
    """Return the changes of a scenario and the data directory that it left; each is recorded once."""
    folder = tmp_path_factory.mktemp("recorded").resolve()
    known = {}

    def record(scenario):
        if scenario not in known:
            home = folder / scenario
            known[scenario] = record_program(recorder, scenario, home, folder / f"{scenario}.log"), home
        return known[scenario]

    return record


@pytest.fixture(params=list(SCENARIOS))
def scenario(request):
    return request.param
