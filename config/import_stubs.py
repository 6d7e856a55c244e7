"""Stub out libraries that our dependencies import but Reverie never calls, to save memory and start-up time."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

# Grouped by the library that imports them. jax, numba, scipy, tqdm: 160 ms and 15 MiB of the web server.
BM25S_EXTRAS = frozenset({"jax", "numba", "scipy", "tqdm"})
# huey imports these if they are installed, even if no queue needs them: 17 MiB and 340 ms in web and scheduler.
HUEY_EXTRAS = frozenset({"redis", "psycopg"})
# sqlite_utils converts their types if they are installed: 8 MiB of the scheduler, which needs neither.
SQLITE_UTILS_EXTRAS = frozenset({"numpy", "pandas"})
# Only needed by models that Reverie does not use: 220 MB and 3 s of every worker.
SPACY_EXTRAS = frozenset({"torch", "cupy", "tensorflow", "mxnet"})
# Its commands, which import two HTTP clients, a terminal library and Jinja: 16 MiB and 0.2 s of CPU of a worker.
SPACY_UNCALLED = frozenset({"spacy.cli"})
# The generated client of a remote catalogue with hundreds of pydantic classes: 20 MiB and 2.5 s of CPU.
LANCEDB_EXTRAS = frozenset({"lance_namespace_urllib3_client"})


@contextmanager
def hide_packages(packages: frozenset[str]) -> Iterator[None]:
    """Import in this thread as if some packages were not installed; packages that are loaded already stay visible."""
    with _found_by(_Absent(packages)):
        yield


@contextmanager
def stub_packages(packages: frozenset[str]) -> Iterator[None]:
    """Import empty classes in this thread instead of some packages, for packages that an import cannot do without."""
    with _found_by(_Hollow(packages)):
        yield


@contextmanager
def _found_by(finder: "_Finder") -> Iterator[None]:
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Finder(MetaPathFinder):
    def __init__(self, packages: frozenset[str]) -> None:
        self._packages = packages
        self._thread = threading.get_ident()

    def knows(self, name: str) -> bool:
        """Return whether a module belongs to the stubbed packages and this thread asked for it."""
        return threading.get_ident() == self._thread and any(
            f"{name}.".startswith(f"{package}.") for package in self._packages
        )


class _Absent(_Finder):
    def find_spec(self, fullname: str, *_: Any) -> None:
        """Refuse the stubbed packages; find no other module."""
        if self.knows(fullname):
            raise ModuleNotFoundError(f"{fullname} is left out", name=fullname)


class _Hollow(_Finder, Loader):
    def find_spec(self, fullname: str, *_: Any) -> ModuleSpec | None:
        """Find the stubbed packages; find no other module."""
        return ModuleSpec(fullname, self, is_package=True) if self.knows(fullname) else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Create a module in which every name exists."""
        return _HollowModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Execute nothing."""


class _HollowModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (), {"__module__": self.__name__})
        setattr(self, name, made)
        return made
