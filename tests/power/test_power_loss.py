"""When the power goes at any moment, a data directory keeps what it acknowledged and shows nothing that it erased."""

import ast
import random
from collections import defaultdict
from dataclasses import replace

import pytest

from tests.power.crashes import apply, explore
from tests.power.disk import Disk
from tests.power.promises import Promises, check
from tests.power.recording import ROOT
from tests.power.scenarios import SCENARIOS

pytestmark = pytest.mark.timeout(600)

# `make test-power` checks a thousand times as many.
STATES, SEEDS = 5, (0, 1)
SHARED_MEMORY = "-shm"


def read_files(folder):
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(SHARED_MEMORY))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_recorder_misses_no_change(recorded, scenario, tmp_path):
    records, home = recorded(scenario)
    disk, promises = Disk(is_journaled=True), Promises()
    for record in records:
        apply(disk, promises, record)
    disk.write_live(tmp_path / "rebuilt")
    rebuilt, real = read_files(tmp_path / "rebuilt"), read_files(home)
    assert set(rebuilt) == set(real)
    assert [name for name, content in real.items() if rebuilt[name] != content] == []


@pytest.mark.parametrize("seed", SEEDS)
def test_power_loss_breaks_no_promise(recorded, scenario, seed, tmp_path):
    records, _ = recorded(scenario)
    checked, failures = explore(scenario, records, seed, STATES, tmp_path)
    assert checked > 1
    assert [str(failure) for failure in failures] == []


@pytest.mark.parametrize("lost", ["events.sqlite-wal", "workspaces"])
def test_missing_sync_is_found(recorded, lost, tmp_path):
    """The search finds the faults that it is made for: here, one file or folder is never synced."""
    records, _ = recorded("write")
    unsynced = [record for record in records if record.kind != "S" or lost not in record.path.split("/")[-2:]]
    assert len(unsynced) < len(records)
    assert any(explore("write", unsynced, seed, 20, tmp_path)[1] for seed in (1, 3, 5))


def find_steps():
    """Return the names of all steps in the source, by file."""
    steps = {}
    for file in [*(ROOT / "pipeline").rglob("*.py"), *(ROOT / "web").rglob("*.py"), *(ROOT / "workers").rglob("*.py")]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "reached":
                [argument] = node.args
                assert isinstance(argument, ast.Constant), f"{file}: a step is named where it is reached"
                steps[argument.value] = file
    return steps


def find_moments(recorded):
    """Return the records at which each step was reached, by step: the first and the last of each scenario."""
    moments = defaultdict(list)
    for scenario in SCENARIOS:
        records, _ = recorded(scenario)
        places = defaultdict(list)
        for number, record in enumerate(records):
            if record.kind == "M" and record.mark["at"] == "step":
                places[record.mark["step"]].append(number)
            elif record.kind == "M" and record.mark["at"] == "forget":
                # What was before belongs to another directory.
                places.clear()
        for step, numbers in places.items():
            moments[step] += [(scenario, number) for number in {numbers[0], numbers[-1]}]
    return moments


def test_every_step_survives_a_crash(recorded, tmp_path):
    moments = find_moments(recorded)
    assert set(find_steps()) == set(moments), "each step is reached by a scenario of tests/power/scenarios.py"
    rng, failures = random.Random(11), []
    for step, places in moments.items():
        scenario, moment = rng.choice(places)
        records, _ = recorded(scenario)
        for number, is_journaled in enumerate((True, False)):
            disk, promises = Disk(is_journaled=is_journaled), Promises()
            for record in records[: moment + 1]:
                apply(disk, promises, record)
            target = tmp_path / f"{step}-{number}"
            # First a killed process, then a loss of power.
            disk.write_live(target) if is_journaled else disk.write_crashed(target, rng)
            try:
                check(target, promises)
            except Exception as error:  # noqa: BLE001 - all steps are reported
                failures.append(f"{step}: {scenario} {moment}: {type(error).__name__}: {error}")
    assert failures == []


def test_torn_write_keeps_sectors_complete(tmp_path):
    from tests.power.recording import Record

    disk = Disk(is_journaled=False)
    create = Record("C", 7, 0, "file", "", b"")
    for record in (create, replace(create, kind="S", inode=0, path=""), replace(create, kind="S")):
        disk.take(record)
    disk.take(Record("W", 7, 0, "file", "", b"a" * 4096))
    seen = set()
    for seed in range(60):
        target = tmp_path / str(seed)
        disk.write_crashed(target, random.Random(seed))
        content = (target / "file").read_bytes()
        assert len(content) % 512 == 0
        assert set(content) <= {0, ord("a")}
        seen.add(len(content))
    assert len(seen) > 3
