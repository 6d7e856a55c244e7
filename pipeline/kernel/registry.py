"""The features in their order. A frame asks here; it imports no feature by its name."""

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from operator import itemgetter
from types import ModuleType
from typing import Any, TypeVar

from pipeline.kernel.feature import Extension, Feature

FEATURES = (
    "facts",
    "goals",
    "lessons",
    "obedience",
    "acts",
    "personal",
    "review",
    "today",
    "ingest",
    "capture",
    "dedup",
    "entities",
    "arcs",
    "predictions",
    "bridges",
    "citations",
    "aging",
    "consolidation",
    "map",
    "diagnostics",
    "snapshots",
    "encryption",
    "export",
    "people",
    "sync",
    "team",
    "workspaces",
    "changes",
    "model",
    "relations",
    "indexing",
    "maintenance",
    "memories",
    "purge",
    "postgres",
)

Entry = TypeVar("Entry")


@cache
def features() -> tuple[Feature, ...]:
    """Return the declarations of all features. This imports no other module of them."""
    return tuple(import_module(f"pipeline.features.{name}").feature for name in FEATURES)


def load(modules: Iterable[str]) -> list[ModuleType]:
    """Import modules of features."""
    return [import_module(module) for module in modules]


@cache
def find_extensions(point: Extension) -> tuple[Any, ...]:
    """Return what features define for a frame."""
    defining = (module for feature in features() for module, points in feature.extensions.items() if point in points)
    return tuple(getattr(module, point) for module in load(defining))


def collect(point: Extension, *values: object) -> list[Any]:
    """Return what all features list for a frame."""
    return [item for list_items in find_extensions(point) for item in list_items(*values)]


def arrange(fixed: Iterable[Entry], added: Iterable[Entry]) -> list[Entry]:
    """Return the entries of a frame in their order: its own have the places 10, 20, …, those of features theirs."""
    numbered = [(10.0 * number, entry) for number, entry in enumerate(fixed, 1)]
    placed: Iterable[Any] = added
    return [entry for _, entry in sorted([*numbered, *((entry.place, entry) for entry in placed)], key=itemgetter(0))]
