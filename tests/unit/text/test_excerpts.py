from hypothesis import given, strategies as st

from pipeline.text.excerpts import CUT, find_excerpt

LONG = "We met on Monday. The port of billing is 8123. Ops gave it to us. " + "Nobody remembers why. " * 9


def test_what_fits_is_told_whole():
    assert find_excerpt("The port is 8123. So it is.", {"port"}, 40) == "The port is 8123. So it is."


def test_of_a_long_text_the_sentence_that_is_asked_for_is_told_with_what_follows():
    assert find_excerpt(LONG, {"port", "bill"}, 60) == f"{CUT}The port of billing is 8123. Ops gave it to us.{CUT}"


def test_before_the_last_sentence_there_is_room_for_what_precedes_it():
    text = "x" * 80 + ". It was long ago. The port is 8123."
    assert find_excerpt(text, {"port"}, 50) == f"{CUT}It was long ago. The port is 8123."


@given(st.text(max_size=400).map(str.strip), st.integers(10, 200))
def test_an_excerpt_never_needs_more_room_and_says_what_the_text_says(text, room):
    told = find_excerpt(text, {"port"}, room)
    assert len(told) <= room
    said = told.removeprefix(CUT).removesuffix(CUT)
    assert "".join(said.split()) in "".join(text.split())
