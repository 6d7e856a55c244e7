"""A feature can be removed: without its files, its tables and its line in the registry, everything else works."""

import json
import os
import subprocess
import sys

import pytest

from pipeline.kernel.registry import features
from tests.support.feature_files import ROOT, copy_without, find_owned, list_modules, list_uses

FEATURES = {feature.name: feature for feature in features()}
# What each feature adds to the frames: a route, a command, a tool, a job and a page in the navigation.
ADDED = {
    "goals": {
        *("/v1/goals", "/v1/goals/{goal_id}", "goals", "Goals"),
        *("goals add", "goals list", "goals set", "goals show"),
    },
    "citations": {"check"},
    "arcs": {"/v1/arcs", "graph arcs", "arcs", "Arcs"},
}
FRAMES = (
    "tests/unit/features/maintenance/test_registry.py",
    "tests/unit/web/test_openapi.py",
    "tests/unit/web/test_mcp_values.py",
    "tests/integration/test_lazy_app.py",
    "tests/integration/test_api_memories.py",
    "tests/integration/web/test_cli_names.py",
)
OTHERS = ("tests/integration/test_api_facts.py", "tests/integration/test_api_lessons.py")
TESTS = (*FRAMES, *OTHERS)
LIST = """
import json
import click
from pipeline.features.maintenance.registry import BY_NAME
from web.http.app import APIS
from web.cli import cli
from web.dashboard.blueprint import NAVIGATION
from web.mcp.full_tools import PROFILES
from web.http.openapi import document

context = click.Context(cli)
top = {name: cli.get_command(context, name) for name in cli.list_commands(context)}
below = [f"{name} {part}" for name, group in top.items() if isinstance(group, click.Group) for part in group.commands]
print(json.dumps([
    *document(endpoint for api in APIS for endpoint in api.endpoints)["paths"],
    *top, *below, *BY_NAME, *(tool.name for tool in PROFILES["full"]), *(link.label for link in NAVIGATION),
]))
"""


def run(folder, *arguments):
    command, env = [sys.executable, *arguments], {**os.environ, "PYTHONPATH": ""}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


def list_added(folder):
    done = run(folder, "-c", LIST)
    assert done.returncode == 0, done.stderr[-3000:]
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("name", ADDED)
def test_no_module_outside_a_feature_imports_it(name):
    assert list_uses(FEATURES[name]) == []


def test_the_tests_of_frames_and_others_are_there():
    assert [test for test in TESTS if not (ROOT / test).exists()] == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ADDED)
def test_frames_and_other_features_work_without_a_feature(name, tmp_path):
    feature, folder = FEATURES[name], tmp_path / "tree"
    copy_without(feature, folder)
    assert list_modules(folder).keys() & find_owned(feature).keys() == set()
    assert list_added(ROOT) - list_added(folder) == ADDED[name]
    tests = [test for test in TESTS if (folder / test).exists()]
    assert set(OTHERS) <= set(tests)
    done = run(folder, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests)
    assert done.returncode == 0, done.stdout[-5000:]
