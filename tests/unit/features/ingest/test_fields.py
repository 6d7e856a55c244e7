"""What other tools' data may say, and what is taken of it."""

import json

import pytest
from hypothesis import given, strategies as st

from pipeline.features.ingest.fields import id_of, metadata_of, name_of, session_of, tags_of, time_of
from pipeline.kernel.records import MAX_METADATA_BYTES
from pipeline.text.redaction import redact_json
from pipeline.write.fields import check_metadata


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (1718013600, "2024-06-10T10:00:00.000Z"),
        (1718013600.123456, "2024-06-10T10:00:00.123Z"),
        (1718013600123, "2024-06-10T10:00:00.123Z"),
        (1718013600123456, "2024-06-10T10:00:00.123Z"),
        ("2024-06-10T10:00:00Z", "2024-06-10T10:00:00.000Z"),
        ("2024-06-10T12:00:00.5+02:00", "2024-06-10T10:00:00.500Z"),
        ("2024-06-10T10:00:00", "2024-06-10T10:00:00.000Z"),
        (" 2024-06-10 ", "2024-06-10T00:00:00.000Z"),
    ],
)
def test_time_is_parsed_from_many_formats(given, expected):
    assert time_of(given) == expected


@pytest.mark.parametrize(
    "given",
    [
        *(None, True, "", "soon", [], {}, 0, -1, 1e300, float("nan"), float("inf"), 253402300800, -62135596800),
        *("9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00", "2024-13-01", "1" * 500, 10**40, 10**4000),
    ],
)
def test_impossible_time_is_rejected(given):
    assert time_of(given) is None


def test_tags_are_plain_words_each_once():
    assert tags_of("pmb", ["Cold Chain", "cold-chain", "Kühlung!", "", 7, None], {"a": 1}, "日本") == (
        "pmb",
        "cold-chain",
        "kuhlung",
    )
    assert tags_of("x" * 80, "-") == ("x" * 50,)
    assert len(tags_of([f"t{number}" for number in range(50)])) == 20


def test_names_are_one_line_of_bounded_length():
    assert name_of("  A\nname\u202e \x00 ") == "A name"
    assert name_of("x" * 1000, 10) == "xxxxxxxxx…"
    assert name_of(7) == name_of(None) == name_of(["a"]) == ""


def test_ids_are_texts_or_integers():
    assert (id_of("a-1"), id_of(17), id_of(" a\n1 ")) == ("a-1", "17", "a 1")
    assert {id_of(given) for given in ("", " ", None, 1.5, True, ["a"], "x" * 201, 10**5000)} == {""}


def test_long_session_name_is_replaced_by_its_hash():
    assert session_of("chatgpt", "") is None
    assert session_of("chatgpt", "a") == "chatgpt:a"
    assert len(session_of("markdown", "a/" * 500)) == len("markdown:") + 64


SCALAR = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=200)
VALUE = st.recursive(SCALAR, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@given(st.dictionaries(st.text(st.characters(), max_size=30), VALUE | st.just("y" * 9000), max_size=6))
def test_metadata_is_always_such_that_it_can_be_stored(given):
    metadata = metadata_of(given)
    check_metadata(metadata, "metadata")
    json.dumps(metadata, ensure_ascii=False, allow_nan=False).encode()
    assert redact_json(metadata)[0] == metadata


def test_the_largest_fields_go_first_where_not_all_fit():
    given = {"a": "x" * 9000, "b": "y" * 10_000, "c": "z", "d": ""}
    assert metadata_of(given) == {"a": "x" * 9000, "c": "z", "left_out": ["b"]}
    assert len(json.dumps(metadata_of({str(n): "x" * 3000 for n in range(40)}))) <= MAX_METADATA_BYTES
