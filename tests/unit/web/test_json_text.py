"""JSON that another program wrote is read as far as it can be read."""

import json
from contextlib import suppress

import pytest
from hypothesis import example, given, strategies as st

from web.http.json_text import ReadObject, decode_json, read_object, read_text_object

DEEP = "[" * 100_000 + "]" * 100_000
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(), max_size=10), inner, max_size=3)
    ),
    max_leaves=8,
)


def without_surrogates(value):
    """Return a value as it is read: halves of surrogate pairs are no characters."""
    return json.loads(decode_json(json.dumps(value).encode()))


@given(st.dictionaries(st.text(max_size=10), anything, max_size=4))
def test_json_object_is_read_completely(fields):
    read = read_object(json.dumps(fields).encode())
    assert read == ReadObject(without_surrogates(fields))
    json.dumps(read.fields, ensure_ascii=False).encode()


@given(st.dictionaries(st.text(max_size=10), anything, min_size=1, max_size=4), st.integers(0, 10_000))
def test_of_an_object_that_was_cut_every_field_before_the_cut_is_read(fields, length):
    text = json.dumps(fields)
    cut = text[: 1 + length % (len(text) - 1)]
    read = read_object(cut.encode())
    whole = without_surrogates(fields)
    assert not read.is_whole
    for name, value in read.fields.items():
        assert name not in whole or name in read.broken or value == whole[name]


@pytest.mark.parametrize(
    ("body", "fields", "broken"),
    [
        ('{"b": {"c": "x", "d": ' + DEEP + '}, "e": 3}', {"b": {"c": "x"}, "e": 3}, {"b"}),
        ('{"a": %s, "b": 2}' % ("9" * 5000), {"b": 2}, {"a"}),
        ('{"a": tru, "b": 2}', {"b": 2}, {"a"}),
        (r'{"path": "C:\Users\x\notes", "b": 2}', {"path": r"C:\Users\x\notes", "b": 2}, set()),
        ('{"a": 1,, "b": 2,}', {"a": 1, "b": 2}, set()),
        ('{"a": 1} and more', {"a": 1}, set()),
        ('{"a": 1, "a": 2}', {"a": 2}, set()),
        ('{"a": "tab\there"}', {"a": "tab\there"}, set()),
        ('\ufeff{"a": 1}', {"a": 1}, set()),
    ],
)
def test_one_bad_value_costs_only_itself(body, fields, broken):
    read = read_object(body.encode())
    assert (read.fields, read.broken, read.is_whole) == (fields, broken, True)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_other_encodings_of_unicode_are_read(encoding):
    assert read_object('{"a": "é"}'.encode(encoding)).fields == {"a": "é"}


def test_invalid_characters_are_replaced_and_escaped_text_is_kept():
    body = rb'{"half": "x\ud83d", "pair": "\uD83D\uDE00", "text": "\\ud83d", "bytes": "' + b'\xff"}'
    read = read_object(body).fields
    assert read == {"half": "x\ufffd", "pair": "\U0001f600", "text": "\\ud83d", "bytes": "\ufffd"}


@given(st.binary(max_size=80))
@example(b"[" * 100_000)
@example(b'{"a":' * 100_000)
def test_nothing_else_than_a_missing_object_is_an_error(body):
    with suppress(ValueError):
        json.dumps(read_object(body).fields, ensure_ascii=False).encode()


@pytest.mark.parametrize(("text", "value"), [('{"a": 1}', {"a": 1}), ("ls", "ls"), ("[1]", "[1]"), (DEEP, DEEP)])
def test_a_text_that_is_the_json_of_an_object_is_read(text, value):
    assert read_text_object(text) == value
