"""A document is read value by value; what is broken in one value costs that value alone."""

import io
import json
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from pipeline.features.ingest import json_values as module
from pipeline.features.ingest.json_values import MAX_DEPTH, ExportEntry, SkippedValue, entries, value_of
from pipeline.kernel.errors import InvalidField

LIMIT = 1024 * 1024

SCALAR = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUE = st.recursive(SCALAR, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


def _read(raw, limit=LIMIT):
    return list(entries(io.BytesIO(raw), limit, lambda _: None))


def _values(raw, limit=LIMIT):
    return [entry.value for entry in _read(raw, limit)]


@given(st.lists(VALUE, max_size=8), st.integers(1, 30), st.sampled_from([None, 1]), st.booleans())
def test_list_entries_are_read_for_any_chunk_size(values, chunk, indent, ascii_only):
    raw = json.dumps(values, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "replace")
    expected = json.loads(raw.decode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CHUNK_BYTES", chunk)
        assert _read(raw) == [ExportEntry(None, number, value) for number, value in enumerate(expected, 1)]


@given(st.dictionaries(st.text(max_size=8), VALUE, max_size=6), st.integers(1, 30))
def test_object_fields_and_list_entries_are_read_for_any_chunk_size(fields, chunk):
    expected = [
        entry
        for name, value in fields.items()
        for entry in (
            [ExportEntry(name, number, one) for number, one in enumerate(value, 1)]
            if isinstance(value, list)
            else [ExportEntry(name, None, value)]
        )
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CHUNK_BYTES", chunk)
        assert _read(json.dumps(fields).encode()) == expected


@pytest.mark.parametrize(
    ("raw", "lost"),
    [
        (b"[1, {not json}, 3]", "not valid JSON"),
        (b'[1, {"a": "\xff"}, 3]', "not valid UTF-8"),
        (b"[1, " + b"9" * 5000 + b", 3]", "not valid JSON"),
        (b"[1, " + b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1) + b", 3]", f"nested deeper than {MAX_DEPTH} levels"),
        (b"[1, " + b"[" * 100_000 + b"]" * 100_000 + b", 3]", f"nested deeper than {MAX_DEPTH} levels"),
        (b'[1, {"a": "' + b"x" * LIMIT + b'"}, 3]', "larger than 1 MiB"),
        (b'[1, "' + b"x" * LIMIT + b'", 3]', "larger than 1 MiB"),
        # Small as bytes, large as objects.
        (b"[1, [" + b"[]," * (LIMIT // 4) + b"0], 3]", "larger than 1 MiB"),
        (b"[1, }, 3]", "not valid JSON"),
        (b"[1, tru, 3]", "not valid JSON"),
    ],
)
def test_unreadable_value_is_skipped_alone(raw, lost):
    assert _values(raw) == [1, SkippedValue(lost), 3]


def test_numbers_may_be_anything():
    assert str(_values(b"[NaN, 1e999, -0.0, 123456789012345678901234567890]")) == (
        "[nan, inf, -0.0, 123456789012345678901234567890]"
    )


def test_a_mark_of_byte_order_is_passed_over():
    assert _values(b"\xef\xbb\xbf[1]") == [1]


@pytest.mark.parametrize("raw", [b"", b" ", b"1", b'"x"', b"null", b"\x00\x00", b"PK\x03\x04", b"# Notes"])
def test_input_that_is_no_list_or_object_is_rejected(raw):
    with pytest.raises(InvalidField, match="is not a JSON list or object"):
        _read(raw)


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"[1, 2", "ends before its JSON does"),
        (b'[1, {"a": [', "ends before its JSON does"),
        (b'["a\\', "ends before its JSON does"),
        (b'{"a"', "ends before its JSON does"),
        (b'{"a":', "ends before its JSON does"),
        (b'{"a": 1', "ends before its JSON does"),
        (b'{"a": 1, b: 2}', "is not valid JSON"),
        (b'{"a" 1}', "is not valid JSON"),
        (b"[1] [2]", "continues after the end of its JSON"),
        (b'{"' + b"x" * 5000 + b'": 1}', "is not valid JSON"),
    ],
)
def test_broken_json_frame_is_rejected(raw, problem):
    with pytest.raises(InvalidField, match=problem):
        _read(raw)


def test_entries_before_a_broken_end_are_returned():
    found = entries(io.BytesIO(b'[{"a": 1}, {"b": 2}, {"c'), LIMIT, lambda _: None)
    assert [next(found).value, next(found).value] == [{"a": 1}, {"b": 2}]
    with pytest.raises(InvalidField):
        next(found)


@given(st.binary(max_size=60) | st.text('[]{}",:\\ 1tn', max_size=40).map(str.encode), st.integers(1, 9))
def test_no_bytes_raise_anything_else(raw, chunk):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CHUNK_BYTES", chunk)
        with suppress(InvalidField):
            _read(raw)


def test_every_byte_is_counted():
    counted = []
    raw = json.dumps([{"a": "x" * 100_000}] * 5).encode()
    assert len(list(entries(io.BytesIO(raw), LIMIT, counted.append))) == 5
    assert sum(counted) == len(raw)


def test_only_a_single_json_value_is_parsed():
    assert value_of(b' {"a": 1}\r\n', LIMIT) == {"a": 1}
    assert value_of(b"{} {}", LIMIT) == SkippedValue("not valid JSON")
    assert value_of(b'{"a"', LIMIT) == SkippedValue("not valid JSON")
    assert value_of(b"", LIMIT) == SkippedValue("not valid JSON")
