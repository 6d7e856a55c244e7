"""What a text of many sentences gives to which slot."""

import pytest
from hypothesis import given, strategies as st

from pipeline.text.similarity.choices import LONGEST_WITH_VALUES, find_stated_values, list_sentence_stems


def slots_of(text):
    return {(one.value, " ".join(sorted(one.slot))) for one in find_stated_values(text)}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Great! Going forward, when naming tables, please start the name with 't_'. It helps.", "t_"),
        ("Mia: I want you to begin all table names with the prefix `tbl_`.", "tbl_"),
        ("Table names matter. Start all your table names with something telling. Let us use 'x_' as that.", "x_"),
    ],
)
def test_slot_is_recognized_in_any_wording(text, value):
    [(found, slot)] = slots_of(text)
    assert found == value
    assert {"name", "start", "tabl"} <= set(slot.split())


def test_shared_verb_applies_to_both_values():
    assert slots_of("Start table names with 't_' and view names with 'v_'.") == {
        ("t_", "name start tabl"),
        ("v_", "name start view"),
    }


def test_unit_is_part_of_the_slot():
    assert slots_of("Keep functions below 30 lines.") != slots_of("Keep functions below 30 branches.")


def test_stated_value_records_its_sentence_and_slot_words():
    text = "Catch every error in the worker. Start table names with 't_'."
    [one] = find_stated_values(text)
    first, second = list_sentence_stems(text)
    assert set(first) == {"catch", "error", "worker"}
    assert one.sentence == 1
    assert one.slot <= set(second)


@pytest.mark.parametrize("text", ["We talked about tables all day.", "'t_'", "", "Start table names with 't_'. " * 200])
def test_most_texts_state_nothing(text):
    assert len(text) > LONGEST_WITH_VALUES or not find_stated_values(text)
    assert find_stated_values(text) == ()


@given(st.text(max_size=300))
def test_any_text_can_be_read(text):
    for one in find_stated_values(text):
        assert one.value in text
