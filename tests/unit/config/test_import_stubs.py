import importlib
import sys
import threading

import pytest

from config.import_stubs import hide_packages, stub_packages


def test_packages_are_hidden_from_the_thread_that_asks_and_from_no_other(tmp_path, monkeypatch):
    (tmp_path / "only_for_others.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    found = []
    other = threading.Thread(target=lambda: found.append(importlib.import_module("only_for_others")))
    with hide_packages(frozenset({"only_for_others"})):
        with pytest.raises(ModuleNotFoundError, match="left out"):
            importlib.import_module("only_for_others")
        other.start()
        other.join(60)
    assert found == [sys.modules.pop("only_for_others")]
    assert importlib.import_module("only_for_others") is not found[0]
    del sys.modules["only_for_others"]


def test_stub_package_has_any_class_and_is_limited_to_its_context():
    name = "no_such_package_anywhere"
    with stub_packages(frozenset({name})):
        module = importlib.import_module(f"{name}.models.table")
    try:
        assert isinstance(module.Table, type)
        assert module.Table is module.Table
        assert not hasattr(module, "__wrapped__")
    finally:
        for loaded in [one for one in sys.modules if one.partition(".")[0] == name]:
            del sys.modules[loaded]
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(name)
