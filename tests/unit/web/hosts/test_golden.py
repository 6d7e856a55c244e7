"""Every host's files before and after, to the byte; taken out again they are as before."""

import shutil
from pathlib import Path

import pytest

from web.features.hosts.commands import HOSTS
from web.hosts.hosts import BY_NAME

DATA = Path(__file__).parents[3] / "data" / "setup"
CASES = sorted(folder.name for folder in DATA.iterdir() if folder.is_dir())


def read_tree(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def with_files_only(found):
    return {name: content for name, content in found.items() if content is not None}


def environment_of(sandbox, case):
    return sandbox.in_project() if case.endswith("-project") else sandbox.host_env


@pytest.fixture(params=CASES)
def case(request, sandbox):
    for part in ("home", "project"):
        if (DATA / request.param / "before" / part).is_dir():
            shutil.copytree(DATA / request.param / "before" / part, sandbox.root / part, dirs_exist_ok=True)
    return request.param


def test_every_host_has_both_cases():
    assert sorted(f"{host}-{scope}" for host in HOSTS for scope in ("user", "project")) == CASES
    assert tuple(BY_NAME) == HOSTS


def test_setup_writes_the_expected_files(sandbox, case):
    sandbox.setup(case.rpartition("-")[0], host_env=environment_of(sandbox, case))
    found = {
        name: content.replace(str(sandbox.root).encode(), b"/world")
        for name, content in with_files_only(sandbox.files()).items()
    }
    assert found == read_tree(DATA / case / "after")


def test_a_second_setup_changes_nothing(sandbox, case):
    host, host_env = case.rpartition("-")[0], environment_of(sandbox, case)
    sandbox.setup(host, host_env=host_env)
    assert [change.action for change in sandbox.plan(host, host_env=host_env)] == ["none"] * len(
        BY_NAME[host].targets(host_env, sandbox.reverie)
    )


def test_removal_restores_every_byte_and_leaves_no_folder(sandbox, case):
    host, host_env = case.rpartition("-")[0], environment_of(sandbox, case)
    before = sandbox.files()
    sandbox.setup(host, host_env=host_env)
    assert sandbox.files() != before
    sandbox.remove(host, host_env=host_env)
    assert sandbox.files() == before
    assert not (sandbox.state / "setup.json").exists()


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("in_project", [False, True])
def test_files_that_were_made_are_gone_again(sandbox, host, in_project):
    host_env = sandbox.in_project() if in_project else sandbox.host_env
    sandbox.setup(host, host_env=host_env)
    assert sandbox.files() != {}
    sandbox.remove(host, host_env=host_env)
    assert sandbox.files() == {}


@pytest.mark.parametrize("in_project", [False, True])
def test_all_hosts_at_once_come_and_go(sandbox, in_project):
    host_env = sandbox.in_project() if in_project else sandbox.host_env
    (sandbox.project / "CLAUDE.md").write_text("mine\n")
    before = sandbox.files()
    assert {change.action for change in sandbox.setup(*HOSTS, host_env=host_env)} <= {"create", "change"}
    assert {change.action for change in sandbox.plan(*HOSTS, host_env=host_env)} == {"none"}
    for host in HOSTS:
        sandbox.remove(host, host_env=host_env)
    assert sandbox.files() == before
