"""The installed wheel works next to a distribution with packages of the same names, and does not replace them."""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.support.stack import free_port

ROOT = Path(__file__).parents[2]
NAMES = ("config", "pipeline", "web", "workers")
FOREIGN = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "foreign"
version = "1"
[tool.hatch.build.targets.wheel]
only-include = ["config.py", "pipeline", "web", "workers"]
"""
NOTE = "Staging listens on port 6543 since PgBouncer sits in front of it"

pytestmark = pytest.mark.timeout(180)


def build_wheel(project, folder):
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=project, capture_output=True, check=True, timeout=120)
    [wheel] = folder.glob("*.whl")
    return wheel


def make_foreign_project(folder):
    for name in NAMES[1:]:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text("OWNER = 'foreign'\n")
    (folder / "config.py").write_text("OWNER = 'foreign'\n")
    (folder / "pyproject.toml").write_text(FOREIGN)
    return folder


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """An environment with both wheels, and the libraries of this one."""
    folder = tmp_path_factory.mktemp("installed")
    wheels = [
        build_wheel(ROOT, folder / "ours"),
        build_wheel(make_foreign_project(folder / "foreign"), folder / "theirs"),
    ]
    python = folder / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True, timeout=120)
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-index", "--no-deps"]
    subprocess.run([*install, *map(str, wheels)], capture_output=True, check=True, timeout=120)
    [packages] = (folder / "venv").glob("lib/python*/site-packages")
    libraries = next(path for path in sys.path if path.endswith("site-packages"))
    # Files of this kind there are not read: the libraries come without this checkout.
    (packages / "libraries.pth").write_text(f"{libraries}\n")
    return python.parent


@pytest.fixture
def run(environment, tmp_path):
    """Run a program of the environment; at the end, stop the stack."""
    variables = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "REVERIE_HOME": str(tmp_path / "home"),
        "REVERIE_PORT": str(free_port()),
        # Nothing here waits for a model.
        "REVERIE_EMBEDDING_MODEL": "no-such-model",
        "HF_HUB_OFFLINE": "1",
    }

    def run(program, *arguments, text=""):
        done = subprocess.run(
            [environment / program, *arguments],
            cwd=tmp_path, env=variables, input=text, capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    run.port = variables["REVERIE_PORT"]
    yield run
    run("reverie", "down")


def test_other_programs_import_the_foreign_packages(environment):
    program = f"import {', '.join(NAMES)}; print([m.OWNER for m in ({', '.join(NAMES)})])"
    done = subprocess.run([environment / "python", "-I", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(["foreign"] * len(NAMES))


def test_installed_stack_works_next_to_foreign_packages(run, tmp_path):
    assert run("reverie", "--version").startswith("reverie ")
    run("reverie", "up", "--daemon")
    run("reverie", "remember", NOTE, "--kind", "decision")
    assert NOTE in run("reverie", "recall", "which port does staging use")
    processes = json.loads(run("reverie", "status", "--json"))["processes"]
    assert {process["name"] for process in processes} == {"supervisor", "web", "worker", "scheduler"}
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": str(tmp_path), "prompt": "staging port?"}
    assert "6543" in run("reverie-hook", "claude-code", text=json.dumps(event))
    with urllib.request.urlopen(f"http://127.0.0.1:{run.port}/assets/reverie.css", timeout=10) as page:
        assert page.status == 200
    # A process of its own reads each file.
    project = tmp_path / "project"
    project.mkdir()
    (project / "harbour.py").write_text('"""Keep the tide tables of the harbour."""\n\n\ndef high_water(): ...\n')
    assert "1 created" in run("reverie", "index", "project", str(project))
