import unicodedata
from uuid import UUID

import pytest
from hypothesis import example, given, strategies as st

from pipeline.kernel.errors import InvalidField
from pipeline.kernel.records import MAX_CONTENT_CHARS, MAX_METADATA_BYTES
from pipeline.text.normalize import content_hash, normalize_id, normalize_json, normalize_text
from pipeline.write.fields import check_metadata, normalize_content

ODD = "\x00\x07\r\n\t\u200b\u202e\ufeff\u0301e \u2028\x85\ud800"
wild = st.text(st.characters() | st.sampled_from(ODD), max_size=60)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | wild,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(wild, inner, max_size=4),
)


@given(wild)
@example("A\x1f\u0323")
@example("A\u00ad\u0323")
def test_normalizing_twice_is_normalizing_once(text):
    assert normalize_text(normalize_text(text)) == normalize_text(text)


@given(wild)
def test_normalized_text_is_nfc_visible_and_storable(text):
    normal = normalize_text(text)
    assert unicodedata.is_normalized("NFC", normal)
    assert normal == normal.strip()
    assert not set(normal) & set("\x00\x07\r\u200b\u202e\ufeff")
    normal.encode("utf-8")


@given(st.text(st.characters(codec="utf-8")))
def test_composed_and_decomposed_text_is_the_same_text(text):
    composed, decomposed = unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)
    assert normalize_text(composed) == normalize_text(decomposed)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("a\r\nb\rc\x85d", "a\nb\nc\nd"),
        ("\u200bx\u200b", "x"),
        ("  x\t", "x"),
        ("e\u0301", "é"),
        ("a\tb", "a\tb"),
        ("👩‍👧", "👩‍👧"),
    ],
)
def test_examples_of_normal_text(text, normal):
    assert normalize_text(text) == normal


@given(json_values)
def test_json_is_normalized_throughout_and_once(value):
    once = normalize_json(value)
    assert normalize_json(once) == once


@given(st.text("ab \n\t", min_size=1, max_size=30))
def test_white_space_does_not_make_another_text(text):
    spaced = text.replace(" ", " \n ")
    assert content_hash(text) == content_hash(spaced)


@given(st.text("ab \n", min_size=1, max_size=4).map(str.strip), st.text("ab \n", min_size=1, max_size=4).map(str.strip))
def test_texts_that_differ_in_more_have_different_hashes(one, other):
    assert (content_hash(one) == content_hash(other)) == (one.split() == other.split())


def test_case_and_punctuation_count():
    assert len({content_hash(text) for text in ("Port 1", "port 1", "Port 1.", "Port  1!")}) == 4


@pytest.mark.parametrize("text", ["", " \n", "\u200b", "\x00", "x" * (MAX_CONTENT_CHARS + 1)])
def test_content_must_say_something_and_not_too_much(text):
    with pytest.raises(InvalidField) as refusal:
        normalize_content(text, "items.3.content")
    assert refusal.value.errors[0].loc == "items.3.content"


def test_content_up_to_the_limit_is_taken():
    assert len(normalize_content("x" * MAX_CONTENT_CHARS, "content")) == MAX_CONTENT_CHARS


def test_metadata_is_measured_in_bytes_of_json():
    check_metadata({"a": "x" * (MAX_METADATA_BYTES - 9)}, "metadata")
    with pytest.raises(InvalidField):
        check_metadata({"a": "ü" * (MAX_METADATA_BYTES // 2)}, "metadata")


@given(st.uuids())
def test_a_session_named_by_a_uuid_keeps_its_name(uuid: UUID):
    assert normalize_id(str(uuid)) == str(uuid)


@given(wild)
def test_normalized_id_is_stable(name):
    assert normalize_id(normalize_id(name)) == normalize_id(name)
