"""Records as rows: what is stored is read as it was, and a value that no record has is damage."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import pytest

from pipeline.store.rows import Rows


class Size(StrEnum):
    SMALL = "small"
    LARGE = "large"


@dataclass(frozen=True, slots=True)
class Animal:
    name: str
    size: Size
    tame: bool
    legs: tuple[str, ...] = ()
    home: Mapping[str, Any] | None = None
    seen: bool | None = None
    rival: Size | None = None
    weight: float = 0.0
    seq: int = 0


ANIMALS = Rows(Animal, "animal", weight="kg")
ZEBRA = Animal("zebra", Size.LARGE, True, ("left", "right"), {"in": "Kenya"}, False, Size.SMALL, 300.5)


@pytest.fixture
def db():
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(
            "CREATE TABLE animal (seq INTEGER PRIMARY KEY, name, size, tame, legs, home, seen, rival, kg)"
        )
        yield connection


@pytest.mark.parametrize("animal", [ZEBRA, Animal("okapi", Size.SMALL, False)])
def test_a_record_is_read_as_it_was_stored(db, animal):
    db.execute(ANIMALS.insert, ANIMALS.values(animal))
    (found,) = ANIMALS.read_all(db.execute(ANIMALS.select))
    assert found == replace(animal, seq=1)
    assert (type(found.size), type(found.tame)) == (Size, bool)
    assert ANIMALS.find(db.execute(f"{ANIMALS.select} WHERE kg > 1000").fetchone()) is None


def test_an_alias_is_the_table_of_each_column():
    rows = Rows(Animal, "animal a", weight="round(a.kg)")
    assert rows.select == (
        "SELECT a.name, a.size, a.tame, a.legs, a.home, a.seen, a.rival, round(a.kg), a.seq FROM animal a"
    )


def test_a_value_that_no_member_has_is_refused(db):
    db.execute(ANIMALS.insert, ANIMALS.values(ZEBRA))
    db.execute("UPDATE animal SET size = 'huge'")
    with pytest.raises(ValueError, match="'huge' is not a valid Size"):
        ANIMALS.read_all(db.execute(ANIMALS.select))
