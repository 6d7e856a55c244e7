from hypothesis import given, strategies as st

from pipeline.text.excerpts import CUT, find_excerpt

LONG = "We met on Monday. The port of billing is 8123. Ops gave it to us. " + "Nobody remembers why. " * 9


def test_text_that_fits_is_returned_unchanged():
    assert find_excerpt("The port is 8123. So it is.", {"port"}, 40) == "The port is 8123. So it is."


def test_long_text_is_cut_to_the_matching_sentence_and_its_successor():
    assert find_excerpt(LONG, {"port", "bill"}, 60) == f"{CUT}The port of billing is 8123. Ops gave it to us.{CUT}"


def test_excerpt_of_the_last_sentence_includes_the_preceding_text():
    text = "x" * 80 + ". It was long ago. The port is 8123."
    assert find_excerpt(text, {"port"}, 50) == f"{CUT}It was long ago. The port is 8123."


@given(st.text(max_size=400).map(str.strip), st.integers(10, 200))
def test_excerpt_respects_its_limit_and_quotes_the_text(text, room):
    told = find_excerpt(text, {"port"}, room)
    assert len(told) <= room
    said = told.removeprefix(CUT).removesuffix(CUT)
    assert "".join(said.split()) in "".join(text.split())
