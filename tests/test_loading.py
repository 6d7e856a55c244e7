"""What a process imports: each entry point loads only what it needs before it has work to do."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from config.import_stubs import BM25S_EXTRAS, LANCEDB_EXTRAS
from pipeline.kernel.registry import FEATURES
from tests.support.source_tree import PACKAGES, ROOT

LOADED = """
import json, sys
from config.settings import load_settings
from pipeline.bootstrap.web import WebContainer
from web.http.app import create_app
import web.http.server
import workers.tasks
container = WebContainer(load_settings(), lambda workspace, stage: None)
create_app(container)
container.close()
print(json.dumps(sorted(sys.modules)))
"""


def run_program(program: str, home: Path) -> Any:
    answer = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "REVERIE_HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(answer.stdout)


def list_loaded(program: str, home: Path) -> set[str]:
    return {name.split(".")[0] for name in run_program(program, home)}


def test_the_web_front_loads_no_model_library(tmp_path):
    heavy = {
        "torch",
        "spacy",
        "sentence_transformers",
        "transformers",
        "onnx",
        "lancedb",
        "apscheduler",
        "httpx",
        "redis",
        "psycopg",
        "sqlcipher3",
    }
    assert list_loaded(LOADED, tmp_path / "home") & heavy == set()


STARTED = """
import json, sys
from functools import partial
from config.settings import load_settings
from pipeline.bootstrap.web import WebContainer
from web.http.lazy_app import LazyApp
from web.http import server
container = WebContainer(load_settings(), lambda workspace, stage: None)
app = LazyApp(container, partial(server._create_hooks, container), partial(server._create_whole, container))
before = sorted(sys.modules)
app.load_hooks()
loaded = sorted(sys.modules)
container.close()
print(json.dumps([before, loaded]))
"""
# What agents' sessions need, and what only the full app needs.
OF_SESSIONS = {"pipeline.prompt.agent_events", "pipeline.prompt.history", "web.hooks.claude_code"}
OF_FULL_APP = {"web.http.app", "web.dashboard.blueprint", "web.features.prompt.http"}


def test_the_server_listens_before_it_imports_the_services_of_sessions(tmp_path):
    before, loaded = map(set, run_program(STARTED, tmp_path / "home"))
    assert before & (OF_SESSIONS | OF_FULL_APP) == set()
    assert loaded & (OF_SESSIONS | OF_FULL_APP) == OF_SESSIONS


DECLARED = """
import json, sys
import click
from web.cli import cli
cli.get_command(click.Context(cli), "mcp")
before = set(sys.modules)
cli.get_help(click.Context(cli))
print(json.dumps([sorted(before), sorted(set(sys.modules) - before)]))
"""


def test_the_help_loads_only_declarations_of_features_and_mcp_not_even_these(tmp_path):
    before, added = run_program(DECLARED, tmp_path / "home")
    assert [name for name in before if "features" in name] == []
    loaded = {name for name in added if name.startswith(PACKAGES)}
    registry = {"pipeline.kernel.feature", "pipeline.kernel.registry"}
    assert loaded - registry == {f"pipeline.features{end}" for end in ("", *(f".{name}" for name in FEATURES))}


def test_the_client_of_a_teams_hooks_loads_no_library(tmp_path):
    """An agent waits for it at each of its steps."""
    program = (
        "import json, sys; before = set(sys.modules); import web.hooks.team_client;"
        " print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    assert list_loaded(program, tmp_path / "home") - sys.stdlib_module_names == {"config", "pipeline", "web"}


def test_a_worker_without_a_task_loads_no_library_of_its_tasks(tmp_path):
    program = "import json, sys; import workers.tasks, workers.consumer"
    heavy = {"numpy", "bm25s", "onnxruntime", "lancedb", "spacy", "torch", "redis", "psycopg", "cryptography"}
    assert list_loaded(f"{program}; print(json.dumps(sorted(sys.modules)))", tmp_path / "home") & heavy == set()


SCHEDULED = """
import json, sys
from config.settings import load_settings
from pipeline.bootstrap.scheduler import SchedulerContainer
import workers.schedule
container = SchedulerContainer(load_settings())
workers.schedule.build_clock(container)
container.close()
print(json.dumps(sorted(sys.modules)))
"""


def test_the_scheduler_loads_no_library_of_models_and_of_other_queues(tmp_path):
    heavy = {"numpy", "pandas", "bm25s", "onnxruntime", "tokenizers", "lancedb", "spacy", "torch", "redis", "psycopg"}
    assert list_loaded(SCHEDULED, tmp_path / "home") & heavy == set()


SEGMENT = """
import json, pathlib, sys, tempfile
from pipeline.index.segment import build_segment, load_segment
with tempfile.TemporaryDirectory() as folder:
    load_segment(pathlib.Path(folder), build_segment(pathlib.Path(folder), [(1, ["zebra"])]))
print(json.dumps(sorted(sys.modules)))
"""


def test_a_lexical_segment_loads_nothing_that_bm25s_can_do_without(tmp_path):
    loaded = list_loaded(SEGMENT, tmp_path / "home")
    assert "bm25s" in loaded
    assert loaded & BM25S_EXTRAS == set()


TAGGED = """
import json, sys
from pipeline.features.entities.stage import SpacyTagger
SpacyTagger.load().tag(["Ada Lovelace wrote to Charles Babbage in London."])
print(json.dumps(sorted(sys.modules)))
"""


def test_a_tagger_loads_no_library_that_it_can_do_without(tmp_path):
    loaded = list_loaded(TAGGED, tmp_path / "home")
    assert "spacy" in loaded
    # Those of models, and those of spaCy's commands.
    unused = {"torch", "transformers", "scipy", "pandas", "weasel", "typer", "httpx", "requests", "jinja2"}
    assert loaded & unused == set()


# Empty modules have the same names, without the contents of the real ones.
STORED = """
import json, sys, tempfile
from pathlib import Path
import numpy as np
from pipeline.index.vectors import VectorTable
with tempfile.TemporaryDirectory() as folder:
    table = VectorTable(Path(folder) / "vectors", "m", 4)
    with table.exclusive():
        table.replace({1: np.eye(4, dtype=np.float32)[:1]})
    assert table.count() == 1
print(json.dumps(sorted(name.replace(".", "/") for name in sys.modules)))
"""


def test_vectors_load_no_client_of_a_remote_catalogue(tmp_path):
    loaded = list_loaded(STORED, tmp_path / "home")
    assert "lancedb" in loaded
    assert {f"{package}/api_client" for package in LANCEDB_EXTRAS} & loaded == set()
    assert loaded & {"torch", "transformers", "scipy", "pandas"} == set()


def test_settings_are_read_without_side_effects(tmp_path):
    home = tmp_path / "home"
    list_loaded(
        "import json, sys, config.settings as s; s.load_settings(); print(json.dumps(sorted(sys.modules)))", home
    )
    assert not home.exists()
