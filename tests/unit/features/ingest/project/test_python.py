FILE = '''
    #!/usr/bin/env python
    # Copyright 2024 Somebody. All rights reserved.
    """Who may enter: tickets
    are checked here.

    A second paragraph.
    """

    from __future__ import annotations

    import re
    from collections.abc import Mapping

    from shop import prices, orders
    from shop.errors import NotSold
    from . import seats
    from .gate.lock import Lock as L
    import yaml as y

    MAX_SEATS = 120
    PATTERN = re.compile(
        r"a pattern that is far too long to be told in a line of constants, isn't it"
    )
    Row = Mapping[str, int]
    T = TypeVar("T")
    app = Flask(__name__)

    try:
        import fast
    except ImportError:
        def fallback(row: int) -> int:
            """Count slowly."""
            return row


    @dataclass(frozen=True)
    class Ticket(Base, metaclass=Meta):
        """A right to enter, e.g. for a day. It is never lent."""

        number: int
        colour: str = "red"
        _secret: int = 0

        def __init__(self, number: int) -> None:
            self.number = number

        @property
        def row(self) -> int:
            """The row of the seat."""
            return self.number // 10

        @classmethod
        async def of(cls, text: str, *, strict: bool = True) -> Ticket: ...

        def _hide(self): ...

        def __repr__(self): ...

        class Kind(Enum):
            def __init__(self): ...

            DAY = 1
            YEAR = 2


    @app.post("/tickets/<int:number>")
    @login_required
    def sell(number, /, *args, price=3, **rest):
        def inner(): ...


    @overload
    def check(ticket: int) -> bool: ...
    def check(ticket):
        "Tell whether it is valid"


    def _quietly(): ...


    class _Hidden:
        def call(self): ...


    def everything(
        first: Mapping[str, tuple[int, int]],
        second: Mapping[str, tuple[int, int]],
        third: Mapping[str, tuple[int, int]],
    ) -> int:
        pass
'''


def test_a_python_file(project):
    project.write(
        {
            "shop/__init__.py": '"""Sells."""',
            "shop/errors.py": "class NotSold(Exception): ...",
            "shop/prices.py": "A = 1",
        }
    )
    project.write({"shop/seats.py": "A = 1", "shop/gate/lock.py": "A = 1", "shop/door.py": FILE})
    assert project.read_lines("shop/door.py") == [
        "shop/door.py · Python, 90 lines: Who may enter: tickets are checked here.",
        "fallback(row: int) -> int (l. 31): Count slowly.",
        (
            "@dataclass class Ticket(Base, metaclass=Meta) (l. 37): A right to enter, e.g. for a day. "
            "Fields: number, colour."
        ),
        "Ticket.__init__(number: int) -> None (l. 44).",
        "@property Ticket.row() -> int (l. 48): The row of the seat.",
        "async Ticket.of(text: str, *, strict: bool = True) -> Ticket (l. 53).",
        "class Ticket.Kind(Enum) (l. 59). Fields: DAY, YEAR.",
        '@app.post("/tickets/<int:number>") @login_required sell(number, /, *args, price=3, **rest) (l. 68).',
        "check(ticket) (l. 74): Tell whether it is valid.",
        "everything(first, second, third) -> int (l. 85).",
        "Constants: MAX_SEATS = 120 (l. 20), PATTERN (l. 21), Row = Mapping[str, int] (l. 24).",
        (
            "Private: Ticket._hide (l. 55), Ticket.__repr__ (l. 57), _quietly (l. 78), _Hidden (l. 81), "
            "_Hidden.call (l. 82)."
        ),
        (
            "Imports: shop/prices.py, shop/__init__.py, shop/errors.py, shop/seats.py, shop/gate/lock.py, re, "
            "collections.abc, yaml, fast."
        ),
    ]


def test_python_tests_are_listed_by_name(project):
    project.write(
        {"tests/test_door.py": "class TestDoor:\n    def test_opens(self): ...\n\ndef test_closes():\n    '''Doc.'''\n"}
    )
    item = project.items()["tests/test_door.py"]
    assert item.drafts[0].content.splitlines()[1:] == [
        "class TestDoor (l. 1).",
        "Tests: TestDoor.test_opens (l. 2), test_closes (l. 4).",
    ]
    assert item.drafts[0].tags == ("code", "python", "test")
    assert item.drafts[0].importance < 0.35


def test_first_comment_that_is_no_licence_is_the_purpose(outline):
    text = "# -*- coding: utf-8 -*-\n# Copyright (c) 2020 Nobody\n\n# Opens doors.\n# And closes them.\n\nimport os\n"
    assert outline("a.py", text)[0] == "a.py · Python, 7 lines: Opens doors. And closes them."


def test_purpose_of_a_file_falls_back_to_its_main_symbol(outline):
    text = 'class Other: ...\n\nclass BoatHouse:\n    """Where boats sleep."""\n'
    lines = outline("my boats/boat_house.py", text)
    assert lines[0] == "my boats/boat_house.py · Python, 4 lines: Where boats sleep."
    assert "class BoatHouse (l. 3)." in lines


def test_broken_python_is_outlined_partially(outline):
    text = "def before(a): ...\n\ndef broken():\n    x = = 3\n\nclass After:\n    def fine(self, b): ...\n"
    lines = outline("a.py", text)
    assert "before(a) (l. 1)." in lines
    assert "After.fine(b) (l. 7)." in lines


def test_imports_of_the_standard_library_are_never_files_of_the_project(project):
    project.write({"types.py": "A = 1", "a.py": "import types\nimport helper\n", "helper.py": "A = 1"})
    assert project.read_lines("a.py")[1:] == ["Imports: helper.py, types."]


def test_a_relative_import_beyond_the_root_stays_as_written(project):
    project.write({"a.py": "from ...outside import b\n"})
    assert project.read_lines("a.py")[1:] == ["Imports: ...outside."]


def test_a_module_in_src_is_found_from_elsewhere(project):
    project.write({"src/shop/till.py": "A = 1", "checks/a.py": "import shop.till\n"})
    assert project.read_lines("checks/a.py")[1:] == ["Imports: src/shop/till.py."]
