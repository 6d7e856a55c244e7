"""A memory of a branch is synced with its branch, and one machine's decision about the branch reaches the others."""

import pytest

from pipeline.jobs.branches import follow_branches
from pipeline.records import Kind, Scope, ScopeKind, Source
from pipeline.write.share import withdraw
from tests.fakes.branched_repository import FEATURE, BranchedRepository, fast_forward
from tests.fakes.homes import Home, exchange_until_still, pair
from tests.fakes.job_runs import job_run_on
from tests.unit.jobs.test_branches import keep

pytestmark = pytest.mark.git

OF_FEATURE = Scope(ScopeKind.BRANCH, FEATURE)


@pytest.fixture
def homes(tmp_path):
    made = [Home(tmp_path / name) for name in ("one", "two")]
    pair(*made, url=f"dir:{tmp_path}/shared")
    yield made
    for home in made:
        home.close()


@pytest.fixture
def repository(tmp_path):
    repository = BranchedRepository(tmp_path / "project")
    repository.start()
    return repository


def follow(home):
    return follow_branches(job_run_on(home.database(), 1)).counts


def state(home, memory_id):
    memory = home.get(memory_id)
    return memory.scope, memory.branch, memory.archived_at is not None


def test_a_memory_of_a_branch_and_its_promotion_travel(homes, repository):
    one, two = homes
    one.say("Something of the repository")
    memory_id = keep(one.database(), repository.root, source=Source.AGENT, kind=Kind.FACT)
    exchange_until_still(*homes)
    assert state(two, memory_id) == (OF_FEATURE, FEATURE, False)
    # This machine has not seen the branch, so it decides nothing.
    assert "branches" not in follow(two)
    repository.work()
    fast_forward(repository)
    assert follow(one)["promoted"] == 1
    exchange_until_still(*homes)
    assert state(two, memory_id) == state(one, memory_id) == (Scope(), None, False)
    withdraw(two.database(), memory_id, is_copy=False)
    exchange_until_still(*homes)
    assert state(two, memory_id) == state(one, memory_id) == (OF_FEATURE, FEATURE, False)


def test_the_archival_of_a_deleted_branch_travels(homes, repository):
    one, two = homes
    one.say("Something of the repository")
    memory_id = keep(one.database(), repository.root)
    exchange_until_still(*homes)
    repository.go_on()
    repository.git("branch", "--quiet", "-D", FEATURE)
    assert follow(one)["archived"] == 1
    exchange_until_still(*homes)
    assert state(two, memory_id) == (OF_FEATURE, FEATURE, True)
