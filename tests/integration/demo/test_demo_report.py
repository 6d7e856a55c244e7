import io

from hypothesis import given, strategies as st
from rich.console import Console

from demo.report import describe_step, one_line, pick_lines, print_step
from demo.story import Step

STEP = Step("reverie graph arcs", ("jobs",), r"^\S", 2)


def print_report(*arguments):
    out = io.StringIO()
    print_step(Console(file=out, width=60), *arguments)
    return out.getvalue()


@given(st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=300), st.integers(10, 120))
def test_one_line_never_exceeds_its_width(text, width):
    assert len(one_line(text, width)) <= width


def test_only_matching_lines_are_shown_and_no_more_than_asked_for():
    assert pick_lines(STEP, "one\n  member\n\ntwo\nthree\n") == ["one", "two"]


def test_demo_step_shows_the_text_that_a_person_or_agent_types():
    assert describe_step(STEP) == "$ reverie graph arcs"
    assert describe_step(Step("hook", (), event={"prompt": "thanks!"})) == "> thanks!"
    assert describe_step(Step("hook", (), event={"tool_input": {"command": "ls"}})) == "agent runs: ls"


def test_a_step_is_printed_with_its_verdict_and_as_it_is():
    text = print_report(STEP, "the [jobs] thread", ())
    assert text == "✓ $ reverie graph arcs\n    the [jobs] thread\n"
    assert print_report(STEP, "", ["jobs"]) == "✗ $ reverie graph arcs  (no answer)\n    expected: jobs\n"
