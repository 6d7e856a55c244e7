import pytest
from hypothesis import given, strategies as st

from pipeline.text.similarity.comparable_text import gives_another_value
from pipeline.text.similarity.normalizer import strip_announcement


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Start test names with `it_`", "Decision: start test names with `should_` in this project."),
        ("From now on, always end hook names with '_cb'", "Rule of this team: always end hook names with '_fn'"),
        ("Use PascalCase for view names", "Please use snake_case for view names from now on."),
        ("Set the timeout of the gateway to 30", "Now set the timeout of the gateway to 45."),
    ],
)
def test_another_value_for_the_same_thing_is_seen_however_it_is_announced(first, second):
    assert gives_another_value(first, second)
    assert gives_another_value(second, first)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Start test names with `it_`", "Rule: start test names with `it_`"),
        ("Start test names with `it_`", "Start hook names with `on_`"),
        ("Start test names with `it_`", "End test names with `_it`"),
        ("Add the `@slow` mark to all tests", "Add the `@db` mark to all tests"),
        ("Always import the `json` module first", "Always import the `sys` module first"),
        ("Set the timeout of staging to 30", "Set the timeout of production to 30"),
        ("Start test names with `it_` if they are slow", "Start test names with `db_` if they are slow"),
        ("Never start test names with `it_`", "Start test names with `db_`"),
        ("Should test names start with `it_`?", "Test names start with `db_`"),
        ("Module A listens on port 1", "Module B listens on port 2"),
        ("The build took 30 minutes", "The build took 45 minutes"),
    ],
)
def test_another_subject_or_the_same_value_is_no_replacement(first, second):
    assert not gives_another_value(first, second)
    assert not gives_another_value(second, first)


@given(st.text(max_size=200))
def test_text_without_its_announcement_is_part_of_the_text(text):
    assert strip_announcement(text) in text


@given(st.text(max_size=80), st.text(max_size=80))
def test_the_order_of_two_texts_changes_nothing(first, second):
    assert gives_another_value(first, second) == gives_another_value(second, first)
    assert not gives_another_value(first, first)
