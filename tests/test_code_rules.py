"""Rules for the code of every module: programs, environment, silence, sizes, other systems, tests of single parts."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from benchmarks import size
from tests.support.source_tree import PACKAGES, ROOT, Module, list_imports, modules, within

# Above the first number a reason is needed; the second is the limit.
FILE_LINES = (400, 700)
FUNCTION_LINES = (40, 60)
# Each with its reason.
LONG_FILES: dict[str, str] = {
    "pipeline/features/ingest/conversation_exports.py": "two formats of one kind of export, which share their helpers",
    "pipeline/features/ingest/native/databases.py": "one engine, and the tools whose memories are rows",
    "pipeline/features/sync/exchange.py": "one exchange, whose steps read the same stores and remotes",
    "pipeline/sessions/readers/claude_code.py": "one format, whose parts no other reader uses",
    "pipeline/sessions/readers/codex.py": "one format, whose parts no other reader uses",
}
LONG_FUNCTIONS: dict[str, str] = {}


def test_use_cases_pass_nothing_on():
    """Everyone imports a name from the module that defines it."""
    defined = {module.name: set(_list_defined(module)) for module in modules()}
    wrong = [
        f"{module}:{node.lineno} imports {alias.name} from {node.module}"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).endswith(".usecases")
        for alias in node.names
        if f"{node.module}.{alias.name}" not in defined and alias.name not in defined[str(node.module)]
    ]
    assert wrong == []
    listed = [m.name for m in modules() if m.name.endswith(".usecases") and "__all__" in defined[m.name]]
    assert listed == []


def _list_defined(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


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


# Calls that only some operating systems have are in one module. The others here are programs of one file, or start
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
