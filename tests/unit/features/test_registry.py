"""The declarations of features name what exists, and the registry keeps the order of frames."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest

import pipeline.features
from pipeline.kernel.registry import FEATURES, arrange, collect, features, find_extensions
from web.cli import SECTIONS


@dataclass(frozen=True)
class Entry:
    name: str
    place: float = 0


def test_every_folder_is_a_feature_of_the_registry():
    folders = {file.parent.name for file in Path(pipeline.features.__path__[0]).glob("*/__init__.py")}
    assert folders == set(FEATURES)
    assert [feature.name for feature in features()] == list(FEATURES)


@pytest.mark.parametrize("feature", features(), ids=lambda feature: feature.name)
def test_declared_extensions_and_stages_are_defined(feature):
    defined = [(module, name) for module, names in feature.extensions.items() for name in names]
    defined += [(module, "create_stage") for module in feature.stages.values()]
    assert [(module, name) for module, name in defined if not hasattr(import_module(module), name)] == []


def test_commands_are_in_sections_of_the_help_or_in_groups():
    commands = [command for feature in features() for command in feature.commands]
    assert {command.section for command in commands if " " not in command.name} <= set(SECTIONS)


def test_entries_of_features_stand_between_those_of_the_frame():
    fixed, added = (Entry("a"), Entry("b")), (Entry("last", 1000), Entry("x", 15), Entry("y", 15), Entry("first", 5))
    assert [entry.name for entry in arrange(fixed, added)] == ["first", "a", "x", "y", "b", "last"]


def test_an_extension_that_no_feature_defines_is_empty():
    assert find_extensions("nothing") == ()
    assert collect("nothing", None) == []
