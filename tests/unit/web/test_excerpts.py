"""Of a text, the part that is about a question, within the lines and columns of a terminal."""

from hypothesis import given, strategies as st

from web.features.recall.commands import CUT, LINES, fit_excerpt

LONG = "The gate is painted every spring. " * 20 + "The lock keeper's lamp burns paraffin. " + "Boats wait below. " * 20


def test_a_short_text_is_shown_as_it_is():
    assert fit_excerpt("One line.\nAnother one.", "line", 80) == ["One line.", "Another one."]


def test_long_text_is_shown_around_the_query_words():
    shown = fit_excerpt(LONG, "which lamp does the keeper burn", 60)
    assert len(shown) == LINES
    assert "lamp burns paraffin" in " ".join(shown)
    assert shown[0].startswith(CUT)
    assert shown[-1].endswith(CUT)


def test_excerpt_with_the_most_query_words_is_chosen():
    text = "The lamp. " + "Nothing at all is said here. " * 20 + "The lamp of the keeper burns. " + "Or here. " * 30
    assert "keeper burns" in " ".join(fit_excerpt(text, "lamp keeper burns", 60))


def test_without_a_match_the_beginning_is_shown():
    assert fit_excerpt(LONG, "zeppelin", 60)[0].startswith("The gate is painted")


def test_excerpt_keeps_its_lead_before_the_chosen_part():
    shown = fit_excerpt(f"web/lamp.py · {LONG}", "which lamp does the keeper burn", 60, lead="web/lamp.py")
    assert shown[0].startswith(f"web/lamp.py {CUT}")
    assert "lamp burns paraffin" in " ".join(shown)


@given(st.text(max_size=600), st.text(max_size=40), st.integers(20, 120))
def test_it_never_exceeds_its_lines_and_columns(text, query, width):
    shown = fit_excerpt(text, query, width)
    assert len(shown) <= LINES
    assert all(len(line) <= width for line in shown)
