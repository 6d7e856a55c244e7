"""The import table of the design, and its guides on size and silence, read from the tree itself."""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmarks import size
from config.import_stubs import BM25S_EXTRAS, LANCEDB_EXTRAS
from pipeline.kernel.registry import FEATURES

ROOT = Path(__file__).parents[1]
PACKAGES = ("config", "pipeline", "workers", "web")

LEAVES = frozenset(
    {
        "config",
        "pipeline.kernel.enums",
        "pipeline.kernel.records",
        "pipeline.kernel.errors",
        "pipeline.kernel.extras",
        "pipeline.kernel.times",
        "pipeline.kernel.kinds",
        "pipeline.kernel.anchors",
        "pipeline.kernel.lru",
        "pipeline.kernel.http",
        # What features there are, and what they declare; it imports them only when a frame asks.
        "pipeline.kernel.feature",
        "pipeline.kernel.registry",
    }
)
# What turns text into text; none reads a file nor knows a store.
TEXT = frozenset({"pipeline.text"})
STORE = LEAVES | {"pipeline.kernel.store"}
INDEX = STORE | TEXT | {"pipeline.index"}
# One workspace: its settings, its files and its store.
WORKSPACE = STORE | {"pipeline.kernel.workspace"}
VERBS = INDEX | WORKSPACE | {"pipeline.write", "pipeline.digest", "pipeline.recall"}
USES = VERBS | {
    "pipeline.sessions",
    "pipeline.features.capture",
    "pipeline.context",
    "pipeline.feedback",
    "pipeline.features.ingest",
    "pipeline.jobs",
    "pipeline.features.sync",
    "pipeline.sessions.readers",
    "pipeline.prompt",
}
SERVICES = USES | {"pipeline.features.citations", "pipeline.features.workspaces", "pipeline.features.team"}
WHOLE = SERVICES | {"pipeline.services", "pipeline.bootstrap"}
# An entry point parses, calls one use case and renders. Below the use cases it may import only what does nothing:
# records and pure text functions here, and from any other module the data that is defined there (`is_data`).
DOORS = frozenset(
    {
        "config",
        "pipeline.kernel.enums",
        "pipeline.kernel.records",
        "pipeline.kernel.errors",
        "pipeline.kernel.extras",
        "pipeline.kernel.times",
        "pipeline.kernel.kinds",
        "pipeline.kernel.anchors",
        "pipeline.text",
        "pipeline.kernel.workspace",
        "pipeline.kernel.http",
        "pipeline.services",
        "pipeline.bootstrap",
        "pipeline.features",
    }
)

# What each part may import besides itself, the library and installed packages.
MAY_IMPORT: dict[str, frozenset[str]] = {
    "config": frozenset(),
    "pipeline.kernel.enums": LEAVES,
    "pipeline.kernel.records": LEAVES,
    "pipeline.kernel.errors": LEAVES,
    "pipeline.kernel.extras": LEAVES,
    "pipeline.kernel.times": LEAVES,
    "pipeline.kernel.kinds": LEAVES,
    "pipeline.kernel.anchors": LEAVES,
    "pipeline.kernel.lru": LEAVES,
    "pipeline.kernel.http": LEAVES,
    "pipeline.features": VERBS,
    "pipeline.kernel.feature": LEAVES,
    "pipeline.kernel.registry": LEAVES,
    "pipeline.features.workspaces": LEAVES,
    "pipeline.text": LEAVES,
    "pipeline.kernel.store": LEAVES,
    # What is stored carries the branch of the folder that it comes from.
    "pipeline.kernel.workspace": STORE | {"pipeline.kernel.git.branches"},
    "pipeline.index": STORE | TEXT,
    "pipeline.write": WORKSPACE | TEXT,
    # A merge of two memories changes the tags by which the survivor is found.
    "pipeline.digest": INDEX | {"pipeline.write.reindex"},
    "pipeline.recall": INDEX | WORKSPACE,
    "pipeline.feedback": INDEX | WORKSPACE,
    "pipeline.context": VERBS | {"pipeline.features.workspaces"},
    "pipeline.features.citations": LEAVES | TEXT | {"pipeline.features.workspaces"},
    # Decides about quoting for every door to an agent, also for the one that must be there in an instant.
    "pipeline.text.quoting": LEAVES,
    "pipeline.jobs": VERBS | {"pipeline.features.citations", "pipeline.features.workspaces"},
    "pipeline.features.capture": VERBS | {"pipeline.jobs"},
    "pipeline.features.ingest": VERBS | {"pipeline.features.workspaces"},
    "pipeline.sessions.readers": STORE | TEXT | {"pipeline.features.workspaces"},
    "pipeline.sessions": VERBS | {"pipeline.features.capture", "pipeline.sessions.readers"},
    # Chooses between the lines of all sources.
    "pipeline.prompt": VERBS | {"pipeline.context", "pipeline.sessions"},
    "pipeline.features.sync": VERBS,
    "pipeline.features.team": LEAVES | TEXT,
    "pipeline.services": SERVICES,
    "pipeline.bootstrap": WHOLE,
    "workers": DOORS,
    "web": DOORS | {"workers.notifier", "workers.tasks"},
    "web.mcp": DOORS | {"web", "pipeline.text.quoting"},
    "web.features": DOORS | {"web", "pipeline.text.quoting"},
}

# What an entry point may import although it is no data, each with its reason.
SHARED_WITH_ENTRY_POINTS: dict[str, str] = {
    "pipeline.kernel.git.repository.branch_of_folder": "reads a folder's branch, and no store",
    "pipeline.index.encoders.usual_model": "settings to text",
    "pipeline.kernel.lru.LruCache": "holds values in memory, and no store",
    "pipeline.recall.query.parse_query": "text to record",
    "pipeline.kernel.store.incognito_files.is_any_session_incognito": "the hook client asks while no server runs",
    "pipeline.kernel.store.history.written_by": "names the author of what the block writes",
    "pipeline.kernel.store.home_values.HomeValues": "the type of an argument",
    "pipeline.kernel.store.people.People": "the type of an argument",
    "pipeline.kernel.store.stores.opened_people": "opens the table of people where no server runs",
    "pipeline.features.team.servers.is_unresponsive": "the hook client starts while an agent waits",
    "pipeline.features.team.servers.let_rest": "the hook client starts while an agent waits",
    "pipeline.features.team.servers.name_of": "text to text",
    "pipeline.sessions.readers.cline.unwrap_prompt": "reads a text, and no store",
    "pipeline.sessions.readers.log_lines.digest_before": "reads a log, and no store",
    "pipeline.sessions.readers.opencode.unquote_prompt": "reads a text, and no store",
    "pipeline.sessions.readers.tool_calls.translate": "reads a call, and no store",
    "pipeline.sessions.readers.tool_calls.translate_call": "reads a call, and no store",
    "pipeline.write.fields.check_finite": "value to value",
    "pipeline.write.fields.check_tag": "text to text",
    "pipeline.write.fields.resolve_scope": "record to record",
    "pipeline.write.fact_placement.fact_key": "text to text",
    "pipeline.write.revise.text_mark": "record to text",
    "pipeline.write.state.state_tag": "record to text",
}

# Use cases that call or name another use case, each with its reason.
SERVICES_THAT_USE_SERVICES: dict[tuple[str, str], str] = {
    ("agent_sessions", "encoder"): "a session begins with what waits for an encoder",
    ("agent_sessions", "ended_turns"): "the end of a turn stores its result",
    ("agent_sessions", "guard_offers"): "a prompt may offer to block what a rule forbids",
    ("agent_sessions", "no_save"): "a prompt may ask that nothing is kept",
    ("agent_sessions", "session_intake"): "the end of a turn reads its transcript",
    ("agent_sessions", "prompts"): "a prompt is shown the lines of all sources",
    ("agent_sessions", "team"): "a prompt is also sent to teams",
    ("agent_sessions", "turns"): "a prompt may hold commands to the memory",
    ("spooled_events", "agent_sessions"): "an event from the spool belongs to a session",
    ("spooled_events", "turns"): "a prompt from the spool may hold commands to the memory",
    ("prompts", "encoder"): "a session begins with what waits for an encoder",
    ("conflicts", "review"): "a conflict is a contradiction with an order of precedence",
    ("diagnostics", "encoder"): "doctor compiles the encoder",
    ("diagnostics", "encryption"): "doctor reports the encryption",
    ("diagnostics", "workspace_listing"): "doctor checks every workspace",
    ("diagnostics", "snapshots"): "doctor takes a missing snapshot",
    ("diagnostics", "workspace_config"): "doctor reads the settings of every workspace",
    ("agent_history", "memories"): "a run quotes no memory that was purged",
    ("ingestion", "workspaces"): "a source is named by its repository",
    ("memories", "purges"): "a purge is finished at once where it can be",
    ("no_save", "incognito"): "a session that is not kept is incognito",
    ("no_save", "purges"): "a person may have their last message deleted",
    ("no_save", "turns"): "the other messages of a client are stored",
    ("operations", "snapshots"): "the overview shows the last snapshot",
    ("prompts", "session_search"): "what sessions decided is found by what was said in them",
    ("prompts", "team"): "a prompt is also shown what teams have",
    ("review", "sharing"): "undoing a share withdraws the memory",
    ("session_folders", "workspaces"): "a session goes to the workspace of its folder",
    ("session_intake", "distill"): "the end of a turn proposes lessons",
    ("session_intake", "incognito"): "a fork of an incognito session is incognito",
    ("session_intake", "session_folders"): "a folder decides whether anything is stored",
    ("session_intake", "taken_back"): "a session's file shows what the person took back",
    ("session_intake", "turns"): "orders in the middle of a turn are carried out",
    ("session_import", "import_progress"): "an import records how far it is",
    ("session_import", "session_search"): "an import ends when its sessions can be found",
    ("session_import", "session_watch"): "both look where agents keep their files",
    ("session_import", "session_folders"): "a session goes to the workspace of its folder",
    ("session_import", "taken_back"): "a session's file shows what the person took back",
    ("history", "recall"): "a question is only suggested if the answer comes first",
    ("history", "session_search"): "a question is only suggested if the answer comes first",
    ("team", "recall"): "a recall with teams starts with this machine's",
    ("turns", "guard_offers"): "a prompt may turn a rule into a guard",
    ("workspace_changes", "export"): "a move imports an export of the other workspace",
    ("workspace_changes", "workspaces"): "the folders of the default workspace keep it",
    ("workspaces", "workspace_listing"): "a folder's workspace is used if it exists",
}

# Where a library may be imported; every other place goes through what stands there.
HOME_OF_LIBRARY: dict[str, tuple[str, ...]] = {
    "bm25s": ("pipeline.index",),
    "numkong": ("pipeline.index",),
    "lancedb": ("pipeline.index",),
    # Its decompression reads rollouts of Codex.
    "pyarrow": ("pipeline.index", "pipeline.sessions.readers.zstd"),
    "onnxruntime": ("pipeline.index.onnx_runtime",),
    "tokenizers": ("pipeline.index",),
    "torch": ("pipeline.index",),
    "sentence_transformers": ("pipeline.index",),
    "spacy": ("pipeline.features.entities.stage",),
    "flask": ("web",),
    "waitress": ("web",),
    "limits": ("web.http.limits",),
    "requests": ("web.dashboard.oidc",),
    "authlib": ("web.dashboard.oidc",),
    "joserfc": ("web.dashboard.oidc",),
    "mcp": ("web.mcp",),
    "mcp_types": ("web.mcp",),
    "a2wsgi": ("web.mcp.front",),
    "huey": ("workers",),
    "apscheduler": ("workers", "pipeline.kernel.feature"),
    "httpx": ("pipeline.features.model.extractor", "pipeline.features.sync.remotes.http"),
    "sqlcipher3": ("pipeline.kernel.store.cipher",),
    "sqlite_utils": ("pipeline.kernel.store",),
    "bech32": ("pipeline.features.sync.keys",),
    "cryptography": ("pipeline.features.sync.keys", "pipeline.kernel.store.content_encryption"),
    "obstore": ("pipeline.kernel.store.objects",),
    "pyrage": ("pipeline.features.sync.keys",),
    "psycopg": ("pipeline.kernel.store.postgres",),
    "pypdf": ("pipeline.features.ingest.pdf",),
    "tree_sitter": ("pipeline.features.ingest.project.grammars",),
    **{
        f"tree_sitter_{language}": ("pipeline.features.ingest.project.grammars",)
        for language in ("go", "java", "javascript", "python", "rust", "typescript")
    },
}
# Types of the standard library's sqlite3 that may be named anywhere; connecting and SQL belong to the store.
SQLITE_TYPES = frozenset({"Connection", "IntegrityError", "OperationalError"})
SQL_HOMES = ("pipeline.kernel.store",)
SQLITE_HOMES = (*SQL_HOMES, "workers.queue")
SQL = re.compile(
    r"^\s*(SELECT\s.*\bFROM\b|INSERT\s+(OR\s+\w+\s+)?INTO\b|UPDATE\s+\w+\s+SET\b|DELETE\s+FROM\b|CREATE\s|PRAGMA\s)",
    re.DOTALL,
)

# Above the first number a reason is needed; the second is the limit.
FILE_LINES = (400, 700)
FUNCTION_LINES = (40, 60)
# Each with its reason.
LONG_FILES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {}


@dataclass(frozen=True)
class Module:
    name: str
    path: Path
    tree: ast.Module
    lines: int

    def __str__(self) -> str:
        return self.name


@cache
def modules() -> tuple[Module, ...]:
    found = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            text = path.read_text(encoding="utf-8")
            found.append(Module(name, path, ast.parse(text), len(text.splitlines())))
    return tuple(found)


@cache
def imports() -> dict[str, list[tuple[int, str]]]:
    """Return (line, dotted name) of everything that each module imports, wherever in it."""
    known = {module.name for module in modules()}
    return {module.name: list(_imports(module, known)) for module in modules()}


def _imports(module: Module, known: set[str]) -> Iterator[tuple[int, str]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno} imports relatively"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield node.lineno, whole if whole in known or node.module == "sqlite3" else str(node.module)


def list_imports(module: Module) -> list[tuple[int, str]]:
    return imports()[module.name]


def within(name: str, part: str) -> bool:
    return name == part or name.startswith(f"{part}.")


def part_of(name: str) -> str:
    """Return the row of the table that a module falls under."""
    return max((part for part in MAY_IMPORT if within(name, part)), key=len, default="")


def test_every_module_is_in_the_architecture_table():
    assert [m.name for m in modules() if not part_of(m.name) and m.name != "pipeline"] == []


def test_imports_follow_the_table():
    wrong = [
        f"{module}:{line} imports {name}"
        for module in modules()
        for line, name in list_imports(module)
        if name.split(".")[0] in (*PACKAGES, "tests", "benchmarks", "demo")
        and not any(within(name, part) for part in (part_of(module.name), *MAY_IMPORT[part_of(module.name)]))
        and not (module.name.split(".")[0] in ENTRY_POINTS and imports_only_data(module, line))
    ]
    assert wrong == []


ENTRY_POINTS = frozenset({"web", "workers"})
_DATA_BASES = frozenset({"StrEnum", "Enum", "NamedTuple", "TypedDict", "BaseModel"})


def imports_only_data(module: Module, line: int) -> bool:
    """Return whether an import statement names records, enumerations, types or constants only, or what is listed."""
    imported = [node for node in ast.walk(module.tree) if isinstance(node, ast.ImportFrom) and node.lineno == line]
    return bool(imported) and all(
        f"{node.module}.{alias.name}" in SHARED_WITH_ENTRY_POINTS or is_data(str(node.module), alias.name)
        for node in imported
        for alias in node.names
    )


def is_data(module_name: str, name: str) -> bool:
    """Return whether a module defines a name as a record, an enumeration, a type or a constant."""
    module = next((one for one in modules() if one.name == module_name), None)
    if module is None:
        return False
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            is_record = any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)
            return is_record or any(ast.unparse(base) in _DATA_BASES for base in node.bases)
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return True
    return False


def test_use_cases_do_not_import_each_other():
    used = {
        (module.name.removeprefix("pipeline.services."), name.removeprefix("pipeline.services."))
        for module in modules()
        if within(module.name, "pipeline.services")
        for _, name in list_imports(module)
        if within(name, "pipeline.services")
    }
    assert used == set(SERVICES_THAT_USE_SERVICES)


def test_use_cases_pass_nothing_on():
    """Everyone imports a name from the module that defines it."""
    defined = {module.name: set(_list_defined(module)) for module in modules()}
    wrong = [
        f"{module}:{node.lineno} imports {alias.name} from {node.module}"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and within(str(node.module), "pipeline.services")
        for alias in node.names
        if f"{node.module}.{alias.name}" not in defined and alias.name not in defined[str(node.module)]
    ]
    assert wrong == []
    listed = [m.name for m in modules() if within(m.name, "pipeline.services") and "__all__" in defined[m.name]]
    assert listed == []


def _list_defined(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


@pytest.mark.parametrize("library", HOME_OF_LIBRARY)
def test_library_is_imported_only_by_its_allowed_modules(library):
    homes = HOME_OF_LIBRARY[library]
    wrong = [
        f"{module}:{line}"
        for module in modules()
        for line, name in list_imports(module)
        # entities.py and its siblings share a beginning, not a package.
        if within(name, library) and not any(module.name.startswith(home) for home in homes)
    ]
    assert wrong == []


def test_no_script_imports_onnxruntime_with_its_telemetry():
    """A plain import sends events; `pipeline.index.onnx_runtime` turns this off before."""
    scripts = {file.name: file.read_text(encoding="utf-8") for file in sorted((ROOT / ".ci").iterdir())}
    plain = re.compile(r"^.*\bimport\b.*\bonnxruntime\b|\bfrom onnxruntime\b", re.MULTILINE)
    assert [name for name, text in scripts.items() if plain.search(text)] == []


# Who may read the environment. The client of hooks is one file that imports no settings: an agent waits for it.
READERS_OF_THE_ENVIRONMENT = frozenset({"config.settings", "config.foreign_variables", "web.hooks.client"})


# Which modules start programs, and which program. Git runs in one module, which knows how it runs safely.
STARTS_A_PROGRAM = {
    "config.limited_process": "our own readers of hostile files",
    "pipeline.kernel.git.git": "git, by its list of commands",
    "pipeline.index.compile": "our own compiler of models",
    "pipeline.sessions.import_progress": "our own import",
    "web.features.diagnostics.probe": "the programs that a host runs",
    "web.features.hosts.commands": "the host that the user named",
    "web.stack.detached": "our own programs",
    "web.stack.service_manager": "the platform's manager of services",
    "web.stack.supervisor": "our own programs",
}


def test_programs_are_started_only_in_listed_modules_and_git_only_in_one():
    starting = {
        module.name for module in modules() if any(within(name, "subprocess") for _, name in list_imports(module))
    }
    assert starting == set(STARTS_A_PROGRAM)
    naming_git = {
        module.name
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and node.args
        and re.match(r"(shutil|subprocess|os)\.", ast.unparse(node.func))
        and any(isinstance(part, ast.Constant) and part.value == "git" for part in ast.walk(node.args[0]))
    }
    assert naming_git == {"pipeline.kernel.git.git"}


def test_only_the_settings_read_the_environment():
    wrong = [
        f"{module}:{node.lineno}"
        for module in modules()
        if module.name not in READERS_OF_THE_ENVIRONMENT
        for node in ast.walk(module.tree)
        if (isinstance(node, ast.Attribute) and ast.unparse(node) in ("os.environ", "os.environb", "os.getenv"))
        or (isinstance(node, ast.ImportFrom) and node.module == "os" and any("env" in a.name for a in node.names))
    ]
    assert wrong == []


# What starts a process or a server; a unit test does neither.
STARTERS = (
    "subprocess",
    "multiprocessing",
    "http.server",
    "socketserver",
    "waitress",
    "werkzeug.serving",
    "tests.fakes.command_line",
    "tests.fakes.model_server",
    "tests.support",
)
# The model that these jobs ask is a server of a few lines, in a thread of the test itself.
ASK_A_MODEL = frozenset(
    {"tests/unit/features/consolidation/test_consolidate.py", "tests/unit/features/lessons/test_job.py"}
)


def test_unit_tests_start_no_process_and_no_server():
    wrong = []
    for path in sorted((ROOT / "tests" / "unit").rglob("*.py")):
        file = str(path.relative_to(ROOT))
        names = [
            (node.lineno, name)
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [str(node.module)])
        ]
        wrong += [
            f"{file}:{line} imports {name}"
            for line, name in names
            if any(within(name, starter) for starter in STARTERS) and file not in ASK_A_MODEL
        ]
    assert wrong == []


def test_no_handler_is_silent():
    wrong = [
        f"{module}:{node.lineno}"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ExceptHandler) and all(_says_nothing(statement) for statement in node.body)
    ]
    assert wrong == []


def _says_nothing(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def test_nothing_suppresses_every_exception():
    wrong = [
        f"{module}:{node.lineno}"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith("suppress")
        and any(ast.unparse(argument) in ("Exception", "BaseException") for argument in node.args)
    ]
    assert wrong == []


def test_sqlite_is_opened_only_in_the_store_and_the_queue():
    wrong = [
        f"{module}:{line} imports {name}"
        for module in modules()
        if not any(within(module.name, home) for home in SQLITE_HOMES)
        for line, name in list_imports(module)
        if within(name, "sqlite3") and name.removeprefix("sqlite3.") not in SQLITE_TYPES
    ]
    assert wrong == []


def test_sql_is_only_in_the_store():
    wrong = [
        f"{module}:{node.lineno} {str(node.value)[:40]!r}"
        for module in modules()
        if not any(within(module.name, home) for home in SQL_HOMES)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.match(node.value)
    ]
    assert wrong == []


def test_files_stay_readable():
    _check_lines({str(m.path.relative_to(ROOT)): m.lines for m in modules()}, FILE_LINES, LONG_FILES)


def test_functions_stay_readable():
    lines: dict[str, int] = {}
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{module}.{node.name}"
                lines[name] = max(lines.get(name, 0), node.end_lineno - node.lineno + 1)
    _check_lines(lines, FUNCTION_LINES, LONG_FUNCTIONS)


def _check_lines(lines: dict[str, int], limits: tuple[int, int], reasons: dict[str, str]) -> None:
    usual, most = limits
    long = {name: count for name, count in lines.items() if count > usual}
    assert {name: count for name, count in long.items() if not reasons.get(name) or count > most} == {}
    assert set(reasons) <= set(long), "an exception that is no longer needed"


def test_a_long_function_needs_a_reason_and_has_a_limit():
    _check_lines({"short": 40, "long": 60}, FUNCTION_LINES, {"long": "one table"})
    for lines, reasons in (
        ({"long": 41}, {}),
        ({"long": 41}, {"long": ""}),
        ({"long": 61}, {"long": "one table"}),
        ({"short": 40}, {"short": "one table"}),
    ):
        with pytest.raises(AssertionError):
            _check_lines(lines, FUNCTION_LINES, reasons)


def test_every_folder_is_within_its_budget():
    budgets = size.read_budgets((ROOT / size.DOCUMENT).read_text(encoding="utf-8"))
    assert size.list_excesses(size.measure(), budgets) == [], "see SIZE.md"


def test_there_is_no_drawer_for_everything():
    drawers = {"util", "utils", "helpers", "common", "misc", "base", "mixins"}
    assert [m.name for m in modules() if drawers & set(m.name.split("."))] == []


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
import web.http.server
container = WebContainer(load_settings(), lambda workspace, stage: None)
app = LazyApp(container, partial(web.http.server._create_hooks, container), partial(web.http.server._create_whole, container))
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
    assert loaded == {f"pipeline.features{end}" for end in ("", ".feature", ".registry", *(f".{n}" for n in FEATURES))}


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


# Hollow modules stand under the same names: what would be in the real ones is not there.
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


# What only some operating systems have stands behind one module. The others here are programs of one file, or start
# while an agent waits, and ask for the system themselves.
OF_THE_SYSTEM = {"config.operating_system", "web.stack.detached", "web.http.local_connection"}
POSIX_MODULES = {"fcntl", "resource", "pwd", "grp", "termios", "pty", "tty", "posix", "syslog"}
POSIX_NAMES = {
    "os": {
        "fork",
        "forkpty",
        "setsid",
        "setpgid",
        "killpg",
        "getuid",
        "geteuid",
        "getgid",
        "getegid",
        "getpgid",
        "getpgrp",
        "getsid",
        "nice",
        "chown",
        "fchown",
        "fchmod",
        "lchown",
        "mkfifo",
        "wait",
        "wait3",
        "wait4",
        "pread",
        "pwrite",
        "preadv",
        "sched_getaffinity",
        "posix_spawn",
        "O_NOFOLLOW",
        "O_NONBLOCK",
        "O_DIRECTORY",
        "O_CLOEXEC",
        "sysconf",
        "uname",
        "statvfs",
        "openpty",
        "register_at_fork",
        "setuid",
        "setgid",
    },
    "signal": {
        "SIGKILL",
        "SIGHUP",
        "SIGUSR1",
        "SIGUSR2",
        "SIGCHLD",
        "SIGALRM",
        "SIGPIPE",
        "SIGQUIT",
        "alarm",
        "setitimer",
        "pause",
    },
    "select": {"epoll", "kqueue"},
    "socket": {"AF_UNIX", "socketpair", "SO_REUSEPORT"},
    "time": {"tzset"},
}
POSIX_OPTIONS = {"start_new_session", "process_group", "preexec_fn", "pass_fds", "dir_fd"}


def calls_of_the_system(file):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in POSIX_MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in POSIX_MODULES:
            yield node.module
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in POSIX_NAMES.get(node.value.id, ()) or (node.value.id, node.attr) == ("os", "name"):
                yield f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.keyword) and node.arg in POSIX_OPTIONS:
            yield node.arg


def test_system_specific_calls_are_in_a_single_module():
    found = {
        name: calls
        for package in (*PACKAGES, "demo")
        for file in sorted((ROOT / package).rglob("*.py"))
        if (name := ".".join(file.relative_to(ROOT).with_suffix("").parts)) not in OF_THE_SYSTEM
        if (calls := sorted(set(calls_of_the_system(file))))
    }
    assert found == {}


# Other libraries are imported first, as they are on this machine; then the system is taken for another.
ON_ANOTHER_SYSTEM = """
import importlib, os, pathlib, pkgutil, select, signal, sys
modules = [
    module.name
    for package in ("config", "pipeline", "workers", "web")
    for module in pkgutil.walk_packages([package], f"{package}.")
    if not module.name.endswith("__main__")
]
for name in modules:
    importlib.import_module(name)
for name in [name for name in sys.modules if name.split(".")[0] in ("config", "pipeline", "workers", "web")]:
    del sys.modules[name]
system = sys.argv[1]
if system == "win32":
    for name in sys.argv[2].split():
        sys.modules[name] = None
    for place in (os, signal, select):
        for name in sys.argv[3].split():
            if hasattr(place, name):
                delattr(place, name)
    os.name = "nt"
    pathlib.WindowsPath = pathlib.PosixPath
    # Since Python 3.13, Path itself chooses, by a name of its own.
    getattr(pathlib, "_local", pathlib).WindowsPath = pathlib.PosixPath
sys.platform = system
print(sum(importlib.import_module(name) is not None for name in modules))
"""


@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_every_module_can_be_imported_on_another_system(system, tmp_path):
    gone = " ".join([*POSIX_NAMES["os"], *POSIX_NAMES["signal"], "epoll", "kqueue"])
    done = subprocess.run(
        [sys.executable, "-c", ON_ANOTHER_SYSTEM, system, " ".join(POSIX_MODULES - {"posix"}), gone],
        cwd=ROOT,
        env=os.environ | {"REVERIE_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 200
