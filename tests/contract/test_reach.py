"""The closure of `make reach`, on a package that has one of everything it follows."""

import ast
import importlib
from textwrap import dedent

import pytest

from benchmarks.reach import REQUESTS, Closure, Code

FILES = {
    "shop/__init__.py": "",
    "shop/front.py": """
        from functools import partial

        from shop import prices
        from shop.stock import Archive, Shelf, Store, open_store

        HANDLERS = {"sell": partial(prices.charge)}

        def sell(store: Store) -> None:
            HANDLERS["sell"]()
            with open_store() as opened:
                opened.take()
            store.count

            def nested() -> None: ...

        def tidy(shelf: Shelf) -> None:
            shelf.take()

        def lend(archive: Archive) -> None:
            Archive().take()
        """,
    "shop/prices.py": """
        def charge() -> None:
            _tax()

        def _tax() -> None: ...

        def discount() -> None: ...
        """,
    "shop/stock.py": """
        class Store:
            @property
            def count(self) -> int:
                return _measure()

            def __enter__(self) -> "Store":
                return self

            def __exit__(self, *failure: object) -> None: ...

            def take(self) -> None: ...

        class Shelf(Store):
            def take(self) -> None: ...

            def dust(self) -> None: ...

        class Archive(Shelf):
            def take(self) -> None:
                super().take()

        def open_store() -> Store:
            return Shelf()

        def _measure() -> int:
            return 1
        """,
    "shop/unused.py": "def rest() -> None: ...",
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    root = tmp_path_factory.mktemp("code")
    (root / "shop").mkdir()
    for name, text in FILES.items():
        (root / name).write_text(dedent(text))
    return Code(root, ("shop",))


def list_reached(shop, handler):
    """Return the functions that a handler reaches, each with its class."""
    names = {}
    for file, text in FILES.items():
        for node in ast.walk(ast.parse(dedent(text))):
            owner = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
            for item in getattr(node, "body", ()):
                if isinstance(item, ast.FunctionDef):
                    names[file, item.lineno] = f"{owner}{item.name}"
    return {names[place] for place in Closure(shop, handler).functions}


def test_names_tables_properties_contexts_and_overrides_are_followed(shop):
    assert list_reached(shop, "shop.front.sell") == {
        *("sell", "nested", "charge", "_tax", "open_store", "_measure"),
        # The handler makes a Shelf, and no Archive.
        *("Store.count", "Store.__enter__", "Store.__exit__", "Store.take", "Shelf.take"),
    }
    assert Closure(shop, "shop.front.sell").files == {"shop/front.py", "shop/prices.py", "shop/stock.py"}


def test_a_method_of_a_base_is_not_reached_where_it_is_overridden(shop):
    assert list_reached(shop, "shop.front.tidy") == {"tidy", "Shelf.take"}


def test_a_call_of_the_base_is_followed(shop):
    made = {"Store.__enter__", "Store.__exit__"}
    assert list_reached(shop, "shop.front.lend") == {"lend", "Archive.take", "Shelf.take", *made}


def test_a_handler_that_is_gone_is_named(shop):
    with pytest.raises(LookupError, match=r"shop\.front\.gone"):
        Closure(shop, "shop.front.gone")


def test_the_handlers_of_the_requests_are_where_the_figures_look_for_them():
    for handler in REQUESTS.values():
        module, _, name = handler.rpartition(".")
        assert callable(getattr(importlib.import_module(module), name))
