"""The lines of all sources are chosen together: each is shown, or left out for one reason."""

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from pipeline.kernel.records import HEADER, RULES_HEADER, SAID_HEADER, TEAM_HEADER
from pipeline.kernel.records.recall import Hit
from pipeline.prompt.line import (
    ALONE,
    ALREADY_SHOWN,
    BARS,
    BELOW_BAR,
    DECISIONS_HEADER,
    DUPLICATE,
    LEADING_CHARS,
    LONE_CHARS,
    MOST,
    MOST_OF,
    NO_ROOM,
    REPLACED,
    Budget,
    Line,
    LineSource,
    describe_left_out,
    fill,
)
from tests.fakes.memories import PORT_DECISION

HEADER_OF = {
    LineSource.MESSAGE: SAID_HEADER,
    LineSource.REMEDY: "",
    LineSource.RULE: RULES_HEADER,
    LineSource.DECISION: DECISIONS_HEADER,
    LineSource.TEAM: TEAM_HEADER,
}
ROOM = Budget(10_000)


def line(number, source=LineSource.MEMORY, **fields):
    """Return a line with a key and a text of its own; a message has a row number below zero."""
    seq = -number if source is LineSource.MESSAGE else number
    text = fields.pop("text", f"- line {number}")
    header = HEADER_OF.get(source, HEADER)
    made = Line((seq, "v"), source, "fact", text, fields.pop("score", 1.0), text, header)
    return replace(made, **fields)


def reasons(filled):
    return {left.key: reason for left, reason in filled.left_out}


lines_of_all_sources = st.lists(
    st.builds(
        line,
        st.integers(1, 30),
        st.sampled_from(LineSource),
        score=st.floats(0, 2),
        relevance=st.floats(0, 1),
        text=st.integers(1, 400).map("x".__mul__),
        turn=st.none() | st.integers(1, 30),
        follows=st.none() | st.tuples(st.integers(1, 30), st.just("v")),
        reason=st.none() | st.just(REPLACED),
    ),
    max_size=25,
)
keys = st.frozensets(st.tuples(st.integers(-30, 30), st.just("v")))


@given(lines_of_all_sources, st.integers(0, 1500), st.integers(0, 3), keys)
def test_every_line_is_chosen_or_has_one_reason_and_the_budget_is_kept(lines, chars, imports, shown):
    filled = fill(lines, Budget(chars, imports), shown)
    left = [one for one, _ in filled.left_out]
    assert sorted(map(id, [*filled.chosen, *left])) == sorted(map(id, lines))
    assert len(filled.text) <= chars
    assert not shown & {one.key for one in filled.chosen}
    assert all(one.reason is None and one.relevance >= BARS.get(one.source, 0) for one in filled.chosen)
    chosen = {one.key for one in filled.chosen}
    assert len(chosen) == len(filled.chosen)
    assert all(one.follows is None or one.follows in chosen for one in filled.chosen)
    for source in LineSource:
        group = [one for one in filled.chosen if one.source is source]
        limit = imports if source is LineSource.IMPORT else MOST_OF.get(source, MOST)
        assert len(group) <= limit
        for header in {one.header for one in group}:
            scores = [one.score for one in group if one.header == header]
            assert scores == sorted(scores, reverse=True)
    block = filled.text.splitlines()
    assert all(block.count(header) <= 1 for header in {one.header for one in lines if one.header})


def test_messages_and_memories_of_the_person_have_one_header():
    said = line(1, header=SAID_HEADER)
    filled = fill([said, line(2, LineSource.MESSAGE)], ROOM, set())
    assert filled.text.splitlines() == [SAID_HEADER, "- line 2", "- line 1"]


def test_memory_of_a_quoted_message_is_omitted_as_a_duplicate():
    messages = [line(number, LineSource.MESSAGE) for number in (1, 2, 3, 4)]
    memories = [line(10, turn=1), line(11), line(12)]
    filled = fill([*memories, *messages], ROOM, set())
    assert [one.key[0] for one in filled.chosen] == [-1, -2, -3, 11]
    assert reasons(filled) == {(-4, "v"): NO_ROOM, (10, "v"): DUPLICATE, (12, "v"): NO_ROOM}


def test_shown_memories_keep_their_places_so_weaker_memories_do_not_follow():
    lines = [line(number) for number in range(1, 8)]
    filled = fill(lines, ROOM, {one.key for one in lines[:MOST]})
    assert filled.chosen == ()
    assert [reason for _, reason in filled.left_out] == [ALREADY_SHOWN] * MOST + [NO_ROOM] * 2


def test_a_rule_that_is_about_to_be_broken_is_shown_again():
    rule = line(1, LineSource.RULE, again=True)
    assert fill([rule], ROOM, {rule.key}).chosen == (rule,)
    assert reasons(fill([replace(rule, again=False)], ROOM, {rule.key})) == {rule.key: ALREADY_SHOWN}


def test_decisions_keep_their_room_but_rules_come_first():
    decided = line(1, LineSource.DECISION, text="d" * 300)
    memory, rule = line(2, text="m" * 300), line(3, LineSource.RULE, text="r" * 300)
    room = Budget(800)
    assert {one.key[0] for one in fill([memory, decided], room, set()).chosen} == {1, 2}
    assert {one.key[0] for one in fill([memory, decided, rule], room, set()).chosen} == {1, 3}


def test_decision_stated_by_a_memory_is_omitted_with_its_continuation():
    first = line(1, LineSource.DECISION, text="The hold lasts seven minutes")
    other = line(2, LineSource.DECISION, text="- also: refunds are manual", follows=first.key)
    filled = fill([first, other, line(3, text="- [1 d ago] The hold lasts seven minutes")], ROOM, set())
    assert reasons(filled) == {first.key: DUPLICATE, other.key: ALONE}


def test_the_same_text_of_a_team_is_a_duplicate():
    hit = Hit(replace(PORT_DECISION, content_hash="a"), 1.0, 0.9)
    filled = fill([line(1, hit=hit), line(2, LineSource.TEAM, hit=hit)], ROOM, set())
    assert reasons(filled) == {(2, "v"): DUPLICATE}


def test_a_bar_belongs_to_its_source():
    lines = [line(1, relevance=0.52), line(2, LineSource.MESSAGE, relevance=0.52)]
    assert reasons(fill(lines, ROOM, set())) == {(-2, "v"): BELOW_BAR}


@pytest.mark.parametrize(("count", "chars"), [(1, LONE_CHARS), (2, LEADING_CHARS)])
def test_the_best_memory_is_long_and_a_lone_one_may_fill_the_block(count, chars):
    lines = [line(number, score=1 / number, longer="y".__mul__) for number in (1, 2)][:count]
    assert [len(one.text) for one in fill(lines, Budget(), set()).chosen] == [chars, 8][:count]
    decided = line(3, LineSource.DECISION, text="something else was decided")
    assert {len(one.text) for one in fill([lines[0], decided], Budget(), set()).chosen} == {8, len(decided.text)}


def test_a_line_that_is_left_out_is_recorded_with_the_start_of_its_text():
    (left,) = describe_left_out([(line(1, text="word " * 100, relevance=0.42), BELOW_BAR)])
    assert (left.key, left.source, left.score, left.reason) == ("1", "memory", 0.42, BELOW_BAR)
    assert len(left.text) <= 120
