import io

from hypothesis import given, strategies as st
from rich.console import Console

from demo.report import Asked, describe_channels, describe_signals, one_line, print_asked, print_hook
from demo.sample import Question

QUESTION = Question("What broke?", "the clock", "a reason")


def answer(*contents, **more):
    results = [{"content": c, "kind": "fact", "score": 0.5, "occurred_at": "2026-03-30T07:30:00Z"} for c in contents]
    return {"results": results, "took_ms": 4.2, **more}


def print_report(show):
    out = io.StringIO()
    show(Console(file=out, width=80))
    return out.getvalue()


@given(st.text(max_size=300), st.integers(10, 120), st.text(max_size=20))
def test_one_line_never_exceeds_its_width_or_breaks(text, width, around):
    line = one_line(text, width, around)
    assert len(line) <= width
    assert "\n" not in line


def test_one_line_leaves_a_short_text_alone_but_for_its_line_breaks():
    assert one_line("a\n\nb  c", 20) == "a b c"


def test_one_line_shows_the_late_passage_that_was_asked_for():
    line = one_line("x " * 500 + "the clock\nwas wrong " + "y " * 500, 60, "the clock")
    assert "the clock was wrong" in line
    assert line.startswith("…")
    assert line.endswith("…")


def test_the_expected_memory_must_be_the_first():
    assert Asked(QUESTION, answer("it was the clock", "other"), 1.0).came_first
    assert not Asked(QUESTION, answer("other", "it was the clock"), 1.0).came_first
    assert not Asked(QUESTION, answer(), 1.0).came_first


def test_signals_show_rank_and_score_and_a_dash_for_an_absent_channel():
    signals = {"channels": {"lexical": {"rank": 1, "score": 7.214}, "dense": {"rank": 2}}}
    assert describe_signals(signals) == "lexical #1 7.21 · dense #2"


def test_signals_may_be_absent_or_name_a_channel_of_their_own():
    assert describe_signals(None) == "lexical - · dense -"
    assert describe_signals({"channels": {"session": {"rank": 3, "score": 1}}}).endswith("session #3 1.00")


def test_a_degraded_answer_says_so():
    late = {"channels": {"lexical": {"state": "ok"}, "dense": {"state": "late"}}, "degraded": True}
    assert describe_channels(late) == "lexical ok · dense late · degraded"


def test_a_recall_prints_its_memories_times_and_verdict():
    text = print_report(lambda c: print_asked(c, 1, Asked(QUESTION, answer("it was [the clock]"), 12.34)))
    assert "✓ 1 it was [the clock]" in text
    assert "fact · 2026-03-30 · score 0.500" in text
    assert "12.3 ms here, 4.2 ms in the server" in text
    assert "✗ 1" in print_report(lambda c: print_asked(c, 1, Asked(QUESTION, answer("the kettle"), 1.0)))


def test_a_recall_without_results_says_so():
    assert "✗ no memory came back" in print_report(lambda c: print_asked(c, 1, Asked(QUESTION, answer(), 1.0)))


def test_the_hook_is_judged_by_its_context():
    verdicts = []
    text = print_report(lambda c: verdicts.append(print_hook(c, QUESTION, "Known:\n- it was the clock", 5.0)))
    assert verdicts == [True]
    assert "│ - it was the clock" in text
    text = print_report(lambda c: verdicts.append(print_hook(c, QUESTION, "", 5.0)))
    assert verdicts[-1] is False
    assert "missing: the clock" in text
