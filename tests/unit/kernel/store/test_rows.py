"""Records as rows: what is stored is read as it was, and a value that no record has is damage."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

import pytest

from pipeline.kernel.store.rows import Rows, find_row, has_row, list_rows


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


class Ranked(NamedTuple):
    seq: int
    rival: Size | None


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
    ANIMALS.store(db, [animal])
    (found,) = ANIMALS.fetch(db, "")
    assert found == replace(animal, seq=1)
    assert (type(found.size), type(found.tame)) == (Size, bool)
    assert ANIMALS.fetch_one(db, "WHERE kg > 1000") is None


def test_an_alias_is_the_table_of_each_column(db):
    ANIMALS.store(db, [ZEBRA])
    rows = Rows(Animal, "animal a", weight="round(a.kg)")
    assert rows.columns == "a.name, a.size, a.tame, a.legs, a.home, a.seen, a.rival, round(a.kg), a.seq"
    assert rows.fetch_one(db, "WHERE a.tame = 1") == replace(ZEBRA, weight=301.0, seq=1)


def test_a_query_returns_records_and_values(db):
    ANIMALS.store(db, [ZEBRA, replace(ZEBRA, name="okapi", rival=None)])
    assert list_rows(db, Size, "SELECT size FROM animal") == [Size.LARGE, Size.LARGE]
    assert list_rows(db, Ranked, "SELECT seq, rival FROM animal") == [Ranked(1, Size.SMALL), Ranked(2, None)]
    assert find_row(db, str, "SELECT name FROM animal WHERE seq = ?", (2,)) == "okapi"
    assert find_row(db, str, "SELECT rival FROM animal WHERE seq = :seq", {"seq": 2}) is None
    assert find_row(db, int, "SELECT seq FROM animal WHERE seq > 2") is None
    assert [has_row(db, "SELECT 1 FROM animal WHERE seq = ?", (seq,)) for seq in (2, 3)] == [True, False]


def test_a_value_that_no_member_has_is_refused(db):
    ANIMALS.store(db, [ZEBRA])
    db.execute("UPDATE animal SET size = 'huge'")
    with pytest.raises(ValueError, match="'huge' is not a valid Size"):
        ANIMALS.fetch(db, "")
