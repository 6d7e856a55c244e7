"""Every host's files before and after, to the byte; taken out again they are as before."""

import shutil
from pathlib import Path

import pytest

from web.cli.setup import HOSTS
from web.hosts.hosts import BY_NAME

DATA = Path(__file__).parents[3] / "data" / "setup"
CASES = sorted(folder.name for folder in DATA.iterdir() if folder.is_dir())


def read_tree(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def with_files_only(found):
    return {name: content for name, content in found.items() if content is not None}


def machine_of(world, case):
    return world.in_project() if case.endswith("-project") else world.machine


@pytest.fixture(params=CASES)
def case(request, world):
    for part in ("home", "project"):
        if (DATA / request.param / "before" / part).is_dir():
            shutil.copytree(DATA / request.param / "before" / part, world.root / part, dirs_exist_ok=True)
    return request.param


def test_every_host_has_both_cases():
    assert sorted(f"{host}-{scope}" for host in HOSTS for scope in ("user", "project")) == CASES
    assert tuple(BY_NAME) == HOSTS


def test_files_become_what_they_should(world, case):
    world.setup(case.rpartition("-")[0], machine=machine_of(world, case))
    found = {
        name: content.replace(str(world.root).encode(), b"/world")
        for name, content in with_files_only(world.files()).items()
    }
    assert found == read_tree(DATA / case / "after")


def test_a_second_setup_changes_nothing(world, case):
    host, machine = case.rpartition("-")[0], machine_of(world, case)
    world.setup(host, machine=machine)
    assert [change.action for change in world.plan(host, machine=machine)] == ["none"] * len(
        BY_NAME[host].targets(machine, world.reverie)
    )


def test_removal_restores_every_byte_and_leaves_no_folder(world, case):
    host, machine = case.rpartition("-")[0], machine_of(world, case)
    before = world.files()
    world.setup(host, machine=machine)
    assert world.files() != before
    world.remove(host, machine=machine)
    assert world.files() == before
    assert not (world.state / "setup.json").exists()


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("in_project", [False, True])
def test_files_that_were_made_are_gone_again(world, host, in_project):
    machine = world.in_project() if in_project else world.machine
    world.setup(host, machine=machine)
    assert world.files() != {}
    world.remove(host, machine=machine)
    assert world.files() == {}


@pytest.mark.parametrize("in_project", [False, True])
def test_all_hosts_at_once_come_and_go(world, in_project):
    machine = world.in_project() if in_project else world.machine
    (world.project / "CLAUDE.md").write_text("mine\n")
    before = world.files()
    assert {change.action for change in world.setup(*HOSTS, machine=machine)} <= {"create", "change"}
    assert {change.action for change in world.plan(*HOSTS, machine=machine)} == {"none"}
    for host in HOSTS:
        world.remove(host, machine=machine)
    assert world.files() == before
