"""The rules of the tree: layers, rooms, libraries, SQL and sizes, read from the source."""

import ast
import re
from functools import cache

import pytest

from pipeline.kernel.registry import features
from tests.support.source_tree import PACKAGES, Module, list_imports, modules, within

# From the lowest to the highest. A module imports what is below; features and sessions are on the same layer.
LAYERS = (
    ("config",),
    ("pipeline.kernel",),
    ("pipeline.text",),
    ("pipeline.index",),
    ("pipeline.write",),
    ("pipeline.recall",),
    ("pipeline.features", "pipeline.sessions"),
    ("pipeline.prompt",),
    ("pipeline.bootstrap",),
    ("workers",),
    ("web",),
    ("reverie",),
)
# What an entry point leaves to the use cases; of these it may name records, enumerations, types and constants.
BEHIND_USE_CASES = re.compile(r"pipeline\.(kernel\.store\b|index\b|features\.\w+\.(\w*store|\w*stage|\w*job)$)")

# (importing module or package, imported module): reason.
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("pipeline.recall", "pipeline.features.bridges.store"): "a question is widened by the names that bridges connect",
    ("pipeline.recall", "pipeline.features.predictions.store"): "an answer that was predicted is returned",
    ("pipeline.write", "pipeline.features.review.store"): "admission queues a candidate in the same transaction",
    ("pipeline.features.lessons.usecases", "pipeline.prompt.render"): "a preview shows the text of a prompt",
    ("web.features.configuration", "pipeline.index.encoders"): "a command shows the default model",
    ("web.hooks.spool.privacy", "pipeline.kernel.store.incognito_files"): "the hook client asks without a server",
    ("web", "pipeline.kernel.store.people"): "sign-in passes the table on",
    ("web", "pipeline.kernel.store.home_values"): "sign-in passes the table on",
    ("web.features", "pipeline.kernel.store.stores"): "opens the table of people without a server",
    ("web", "pipeline.kernel.store.history"): "names the author of what a request writes",
}
# The only modules that import a library.
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
# Types of the standard library's sqlite3 that may be named anywhere; connecting and SQL belong to the stores.
SQLITE_TYPES = frozenset({"Connection", "IntegrityError", "OperationalError"})
STORES = re.compile(r"pipeline\.kernel\.store\b|pipeline\.features\.\w+\.\w*store$")
SQL = re.compile(
    r"^\s*(SELECT\s.*\bFROM\b|INSERT\s+(OR\s+\w+\s+)?INTO\b|UPDATE\s+\w+\s+SET\b|DELETE\s+FROM\b|CREATE\s|PRAGMA\s)",
    re.DOTALL,
)


def layer_of(name: str) -> int:
    return next(index for index, parts in enumerate(LAYERS) if any(within(name, part) for part in parts))


def feature_of(name: str) -> str | None:
    parts = name.split(".")
    return parts[2] if parts[:2] == ["pipeline", "features"] and len(parts) > 2 else None


@cache
def internal_imports() -> tuple[tuple[Module, int, str], ...]:
    return tuple(
        (module, line, name)
        for module in modules()
        for line, name in list_imports(module)
        if name.split(".")[0] in (*PACKAGES, "tests", "benchmarks", "demo") and name != "pipeline"
    )


def is_excepted(importer: str, imported: str) -> bool:
    return any(within(importer, package) and within(imported, name) for package, name in EXCEPTIONS)


def test_modules_import_only_lower_layers():
    wrong = [
        f"{module}:{line} imports {name}"
        for module, line, name in internal_imports()
        if name.split(".")[0] not in PACKAGES or layer_of(name) > layer_of(module.name)
        if not is_excepted(module.name, name)
    ]
    assert wrong == []


def test_features_import_only_features_that_they_need():
    needed = {feature.name: set(feature.needs) for feature in features()}
    used: dict[str, set[str]] = {name: set() for name in needed}
    for module, _, name in internal_imports():
        feature, other = feature_of(module.name), feature_of(name)
        if feature in used and other in used and feature != other:
            used[feature].add(other)
    assert used == needed


def test_entry_points_leave_stores_indexes_and_jobs_to_use_cases():
    wrong = [
        f"{module}:{line} imports {name}"
        for module, line, name in internal_imports()
        if module.name.split(".")[0] in ("web", "workers") and BEHIND_USE_CASES.match(name)
        if not imports_only_data(module, line) and not is_excepted(module.name, name)
    ]
    assert wrong == []


def test_every_exception_has_a_reason_and_is_needed():
    used = {
        (package, part)
        for package, part in EXCEPTIONS
        for module, _, name in internal_imports()
        if within(module.name, package) and within(name, part)
    }
    assert used == set(EXCEPTIONS)
    assert len(EXCEPTIONS) <= 10
    assert all(EXCEPTIONS.values())


_DATA_BASES = frozenset({"StrEnum", "Enum", "NamedTuple", "TypedDict", "BaseModel"})


def imports_only_data(module: Module, line: int) -> bool:
    """Return whether an import statement names records, enumerations, types or constants only."""
    imported = [node for node in ast.walk(module.tree) if isinstance(node, ast.ImportFrom) and node.lineno == line]
    return bool(imported) and all(is_data(str(node.module), alias.name) for node in imported for alias in node.names)


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


def test_sqlite_is_opened_only_in_the_store_and_the_queue():
    wrong = [
        f"{module}:{line} imports {name}"
        for module in modules()
        if not STORES.match(module.name) and module.name != "workers.queue"
        for line, name in list_imports(module)
        if within(name, "sqlite3") and name.removeprefix("sqlite3.") not in SQLITE_TYPES
    ]
    assert wrong == []


def test_sql_is_only_in_stores():
    wrong = [
        f"{module}:{node.lineno} {str(node.value)[:40]!r}"
        for module in modules()
        if not STORES.match(module.name)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.match(node.value)
    ]
    assert wrong == []
