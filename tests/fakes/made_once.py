"""Create once per process what each test needs: the tables of a store, a classifier, an app's routes and templates.

Each of these takes longer than most tests. Importing this module is enough.
"""

import atexit
import os
import secrets
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from filelock import FileLock
from flask import Flask
from jinja2 import BytecodeCache
from jinja2.bccache import Bucket
from sqlite_utils import Migrations
from werkzeug.routing.rules import Rule

from pipeline.index import sentence_classifier
from pipeline.index.encoder import Encoder
from pipeline.index.sentence_classifier import Examples, Matrix
from pipeline.kernel.store import driver, meta, sqlite
from pipeline.kernel.store.migrations import MIGRATIONS, make_ready
from tests.fakes.encoder import HashEncoder

# A folder in memory, where writing waits for no disk; None where the system has none.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
_one_copy = threading.Lock()


def copy_ready_store(
    connection: sqlite3.Connection, file: Path, migrations: Migrations, *, snapshots: Path | None = None
) -> None:
    """Copy the tables of another new store into an empty file, and apply what is pending, as `make_ready` does."""
    if _is_empty(connection):
        with FileLock(file.with_suffix(".opening")), _one_copy:
            if _is_empty(connection):
                _copy(_make_store(migrations), connection, has_node=migrations is MIGRATIONS)
    make_ready(connection, file, migrations, snapshots=snapshots)


def _is_empty(connection: sqlite3.Connection) -> bool:
    return connection.execute("PRAGMA page_count").fetchone() == (0,)


def _copy(store: sqlite3.Connection, target: sqlite3.Connection, *, has_node: bool) -> None:
    """Copy a store with a new node id, at once: another thread may read the file as soon as it has tables."""
    name_node = "UPDATE meta SET value = ? WHERE key = ?" if has_node else "SELECT ?, ?"
    node = (secrets.token_hex(4), meta.NODE)
    if not driver.is_encrypted(target):
        store.execute(name_node, node)
        store.backup(target)
        return
    _, _, file = store.execute("PRAGMA database_list").fetchone()
    target.execute("ATTACH DATABASE ? AS ready KEY ''", (file,))
    target.execute("BEGIN IMMEDIATE")
    target.execute("SELECT sqlcipher_export('main', 'ready')").fetchone()
    target.execute(name_node, node).fetchall()
    target.execute("COMMIT")
    target.execute("DETACH DATABASE ready")


@cache
def _make_store(migrations: Migrations) -> sqlite3.Connection:
    folder = tempfile.TemporaryDirectory(dir=MEMORY)
    atexit.register(folder.cleanup)
    file = Path(folder.name) / "ready.sqlite"
    connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    make_ready(connection, file, migrations)
    return connection


_fit = sentence_classifier.fit
_fitted: dict[tuple[object, ...], Matrix] = {}


def _fit_once(encoders: Sequence[Encoder], examples: Examples) -> Matrix:
    if any(type(encoder) is not HashEncoder for encoder in encoders):
        return _fit(encoders, examples)
    key = (sentence_classifier.digest_examples(examples), *((encoder.name, encoder.dimension) for encoder in encoders))
    if key not in _fitted:
        _fitted[key] = _fit(encoders, examples)
    return _fitted[key].copy()


class CompiledTemplates(BytecodeCache):
    """The compiled templates of all apps."""

    def __init__(self) -> None:
        self._code: dict[tuple[str, str], object] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._code.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._code[bucket.key, bucket.checksum] = bucket.code


_compile_route = Rule._compile_builder
_routes: dict[tuple[object, ...], Callable[..., tuple[str, str]]] = {}


def _compile_route_once(rule: Rule, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
    key = (rule.rule, tuple(rule._trace), repr(rule.defaults), append_unknown)
    if key not in _routes:
        _routes[key] = _compile_route(rule, append_unknown)
    return _routes[key]


# Before a test adds a migration for a while.
_make_store(MIGRATIONS)
sqlite.make_ready = copy_ready_store
sentence_classifier.fit = _fit_once
Flask.jinja_options = {"bytecode_cache": CompiledTemplates()}
Rule._compile_builder = _compile_route_once
