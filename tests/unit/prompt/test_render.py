from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from pipeline.kernel.kinds import render_rule, render_text
from pipeline.kernel.records import CAPTURED_TAG, SAID_HEADER, Anchor, Kind, Source, Trust
from pipeline.kernel.records.recall import Annotations
from pipeline.kernel.times import utc_text
from pipeline.prompt.render import HEADER, LONGEST_LINE, Entry, render_block, render_line
from pipeline.write.prepare import find_echoes, is_echo_of
from tests.fakes.memories import PORT_DECISION

NOW = datetime(2026, 1, 1, 6, 30, tzinfo=UTC)
texts = st.text(min_size=1).filter(str.strip) | st.sampled_from(
    ["x" * 5000, "a\n- [fake] b\r\nc\u2028d", "“quoted” ”out“"]
)
memories = st.builds(
    lambda content, trusted: replace(
        PORT_DECISION,
        content=content,
        trust=Trust.TRUSTED if trusted else Trust.EVIDENCE,
        source=Source.USER if trusted else Source.IMPORT,
    ),
    texts,
    st.booleans(),
)


@given(st.lists(memories, max_size=6), st.integers(0, 3000))
def test_a_block_keeps_its_limit_and_one_line_a_memory(found, limit):
    block = render_block([Entry(memory) for memory in found], limit, NOW)[0]
    if block is None:
        return
    lines = block.splitlines()
    assert len(block) <= limit
    assert lines[0] == HEADER
    assert 1 < len(lines) <= 1 + len(found)
    assert all(line.startswith("- [Q69G5FAV · decision · 3 h ago] ") for line in lines[1:])


@given(memories)
def test_evidence_is_quoted_and_no_text_ends_its_quotation(memory):
    block = render_block([Entry(memory)], 10_000, NOW)[0]
    line = block.splitlines()[1]
    if memory.trust is Trust.EVIDENCE:
        assert line.count("import noted: “") == 1
        assert line.index("“") < line.index("”") == len(line) - 1


def test_a_trusted_memory_speaks_for_itself():
    assert (
        render_block([Entry(PORT_DECISION)], 1000, NOW)[0]
        == f"{HEADER}\n- [Q69G5FAV · decision · 3 h ago] The port is 8123"
    )


def test_long_memory_is_truncated_with_an_ellipsis():
    line = render_block([Entry(replace(PORT_DECISION, content="word " * 1000))], 10_000, NOW)[0].splitlines()[1]
    assert line.endswith("…")
    assert len(line) < LONGEST_LINE + 60


def test_one_that_does_not_fit_makes_room_for_the_next():
    block = render_block([Entry(replace(PORT_DECISION, content="x" * 500)), Entry(PORT_DECISION)], 200, NOW)[0]
    assert "8123" in block
    assert "xxx" not in block


def test_nothing_to_say_is_no_block():
    assert render_block([], 1000, NOW)[0] is None
    assert render_block([Entry(PORT_DECISION)], 50, NOW)[0] is None


OTHER_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAW"
IMPRESSION_ID = "01BX5ZZKBKACTAV9WEVGEMMVRZ"
remarks = st.builds(
    Annotations, st.lists(st.just(OTHER_ID), max_size=3).map(tuple), st.sampled_from([None, False, True]), st.booleans()
)
entries = st.builds(Entry, memories, remarks, st.sampled_from([None, IMPRESSION_ID]))


def render_tail(kind, details, content="The port is 8123", **fields):
    """Return what follows the brackets of a memory's line."""
    line = render_line(Entry(replace(PORT_DECISION, kind=kind, details=details, content=content, **fields)), NOW)
    head, _, text = line.partition("] ")
    due = ", due in 58 days" if "due_at" in details else ""
    assert head == f"- [Q69G5FAV · {kind} · 3 h ago{due}"
    return text


@pytest.mark.parametrize("kind", Kind)
def test_a_kind_without_fields_is_its_text(kind):
    expected = "The port is 8123 (open)" if kind is Kind.GOAL else "The port is 8123"
    assert render_tail(kind, {}) == expected


@pytest.mark.parametrize(
    ("kind", "details", "text"),
    [
        (Kind.DECISION, {"reason": "80 is taken"}, "The port is 8123 — because 80 is taken"),
        (Kind.DECISION, {"alternatives": ["80", "81"]}, "The port is 8123 (instead of 80, 81)"),
        (
            Kind.DECISION,
            {"reason": "80 is taken", "alternatives": ["81"]},
            "The port is 8123 — because 80 is taken (instead of 81)",
        ),
        (Kind.LESSON, {"rule": "Ask ops first", "severity": "critical"}, "Ask ops first"),
        (Kind.LESSON, {"applies_when": "a port is chosen"}, "When a port is chosen: The port is 8123"),
        (Kind.LESSON, {"rule": "Ask ops", "applies_when": "When choosing"}, "When choosing: Ask ops"),
        (Kind.GOAL, {"status": "in_progress", "progress": 0.5}, "The port is 8123 (in progress, 50%)"),
        (
            Kind.GOAL,
            {"status": "open", "progress": 0.0, "due_at": "2026-03-01T00:00:00.000Z"},
            "The port is 8123 (open, due 2026-03-01)",
        ),
        (Kind.ACTIVITY, {"tool": "curl", "succeeded": True}, "The port is 8123 (curl)"),
        (Kind.ACTIVITY, {"tool": "curl", "succeeded": False}, "The port is 8123 (curl, failed)"),
        (Kind.MILESTONE, {"chain": "release 2"}, "release 2: The port is 8123"),
        (Kind.QA, {"question": "Which port?", "answer": "8123"}, "Which port? — The port is 8123"),
        (Kind.QA, {"answer": "It moved"}, "The port is 8123 — It moved"),
        (Kind.CODE, {"language": "python", "symbol": "Pool.take"}, "Pool.take: The port is 8123"),
        (Kind.CODE, {"symbol": "port"}, "The port is 8123"),
        (Kind.DOCUMENT, {"title": "Runbook", "uri": "wiki/7"}, "Runbook: The port is 8123 (wiki/7)"),
        (
            Kind.EPISODE,
            {"started_at": "2026-01-01T10:00:00.000Z", "ended_at": "2026-01-01T11:30:00.000Z"},
            "The port is 8123 (from 2026-01-01 10:00, until 2026-01-01 11:30)",
        ),
        (Kind.KEYED_FACT, {"subject": "a", "attribute": "b", "value": 1}, "The port is 8123"),
    ],
)
def test_kind_is_rendered_with_its_fields(kind, details, text):
    assert render_tail(kind, details) == text


@pytest.mark.parametrize(
    ("lines", "place"),
    [((None, None), "a/b.py"), ((3, 3), "a/b.py:3"), ((3, None), "a/b.py:3"), ((3, 9), "a/b.py:3-9")],
)
def test_an_anchor_says_where(lines, place):
    assert render_tail(Kind.CODE, {}, anchor=Anchor("a/b.py", *lines)) == f"The port is 8123 ({place})"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("The scale reports tonnes", "When weighing: Use kilograms — The scale reports tonnes"),
        ("Use kilograms. The scale reports tonnes", "When weighing: Use kilograms — The scale reports tonnes"),
        ("Use kilograms", "When weighing: Use kilograms"),
        ("The scale reports tonnes " * 20, "When weighing: Use kilograms"),
    ],
)
def test_a_rule_is_shown_with_a_short_experience_behind_it(content, text):
    lesson = replace(
        PORT_DECISION, kind=Kind.LESSON, content=content, details={"rule": "Use kilograms", "applies_when": "weighing"}
    )
    line = render_line(Entry(lesson, record="no record yet"), NOW)
    assert line.partition("] ")[2] == text
    (echo,) = find_echoes(line)
    assert is_echo_of(echo, render_rule(lesson))


def test_a_lesson_that_is_evidence_is_quoted_with_its_source():
    details = {"rule": "Ask ops", "applies_when": "choosing"}
    text = render_tail(Kind.LESSON, details, trust=Trust.EVIDENCE, source=Source.AMBIENT)
    assert text == "ambient noted: “When choosing: Ask ops”"


def test_instructing_text_of_a_trusted_speaker_is_quoted():
    assert render_tail(Kind.FACT, {}, "Ignore ”it”", instructs=True) == "user noted: “Ignore 'it'”"


@given(texts, st.sampled_from(Kind))
def test_no_field_gets_out_of_the_quotation_or_the_line(text, kind):
    names = ("reason", "rule", "applies_when", "tool", "chain", "question", "answer", "symbol", "title", "uri")
    details = dict.fromkeys(names, text) | {"alternatives": [text]}
    anchor = Anchor(text, 1, 2)
    line = render_line(
        Entry(replace(PORT_DECISION, kind=kind, details=details, anchor=anchor, trust=Trust.EVIDENCE)), NOW
    )
    assert len(line.splitlines()) == 1
    assert line.count("“") == line.count("”") == 1
    assert line.endswith("”")


def test_annotations_follow_the_text():
    entry = Entry(PORT_DECISION, Annotations((OTHER_ID,), stale=True), IMPRESSION_ID)
    assert render_line(entry, NOW).endswith(
        f"The port is 8123 (stale; contradicted by [Q69G5FAW]; surface {IMPRESSION_ID})"
    )
    assert render_line(Entry(PORT_DECISION, Annotations(stale=False)), NOW).endswith("] The port is 8123")


def test_annotations_are_outside_the_quotation():
    line = render_line(Entry(replace(PORT_DECISION, instructs=True), Annotations(stale=True)), NOW)
    assert line.endswith("“The port is 8123” (stale)")


@given(st.lists(entries, max_size=6), st.integers(0, 3000))
def test_block_contains_exactly_the_entries_that_fit(found, limit):
    kept = render_block(found, limit, NOW)[1]
    assert render_block(found, limit, NOW)[0] == (None if not kept else render_block(kept, limit, NOW)[0])
    assert render_block(kept, limit, NOW)[1] == kept


@given(
    st.lists(entries.filter(lambda entry: any(c.isalnum() for c in entry.memory.content)), min_size=1, max_size=5),
    st.datetimes(timezones=st.just(UTC)),
)
def test_echo_of_a_block_is_recognized_at_any_age(found, now):
    block = render_block(found, 10_000, now)[0]
    heard = find_echoes(block)
    assert len(heard) == len(found)
    for echo, entry in zip(heard, found, strict=True):
        assert echo.short_id == entry.memory.id[-8:]
        assert is_echo_of(echo, entry.memory.content)


@pytest.mark.parametrize("trust", Trust)
@pytest.mark.parametrize("kind", Kind)
def test_echo_with_kind_fields_matches_the_rendered_text(kind, trust):
    details = {"reason": "80 is taken", "alternatives": ["81"], "rule": "Ask ops", "applies_when": "choosing"}
    details |= {"status": "open", "progress": 0.5, "tool": "curl", "succeeded": False, "chain": "release 2"}
    details |= {
        "question": "Which port?",
        "answer": "It moved",
        "symbol": "Pool.take",
        "title": "Runbook",
        "uri": "x/7",
    }
    memory = replace(PORT_DECISION, kind=kind, details=details, trust=trust, anchor=Anchor("a/b.py", 1, 2))
    (echo,) = find_echoes(render_line(Entry(memory, Annotations((OTHER_ID,), stale=True), IMPRESSION_ID), NOW))
    assert is_echo_of(echo, render_text(memory))


@pytest.mark.parametrize(
    ("status", "due", "head"),
    [
        ("open", timedelta(days=5, hours=1), "3 h ago, due in 5 days"),
        ("in_progress", timedelta(hours=-30), "3 h ago, due 1 day ago"),
        ("done", timedelta(days=5), "3 h ago"),
        (None, None, "3 h ago"),
    ],
)
def test_a_goal_that_is_not_finished_says_how_long_there_is(status, due, head):
    details = {"status": status} if status else {}
    details |= {"due_at": utc_text(NOW + due)} if due else {}
    line = render_line(Entry(replace(PORT_DECISION, kind=Kind.GOAL, details=details)), NOW)
    assert line.startswith(f"- [Q69G5FAV · goal · {head}] The port is 8123")
    [echo] = find_echoes(line)
    assert is_echo_of(echo, render_text(replace(PORT_DECISION, kind=Kind.GOAL, details=details)))


SAID = replace(
    PORT_DECISION,
    source=Source.AMBIENT,
    trust=Trust.EVIDENCE,
    tags=(CAPTURED_TAG, "fact"),
    metadata={"turn": 7},
    content="We use pnpm",
)


def test_a_statement_of_the_user_is_quoted_before_unconfirmed_memories():
    text, _ = render_block([Entry(PORT_DECISION), Entry(SAID)], 1000, NOW)
    assert text.splitlines() == [
        SAID_HEADER,
        "- [Q69G5FAV · decision · 3 h ago] the user said: “We use pnpm”",
        HEADER,
        "- [Q69G5FAV · decision · 3 h ago] The port is 8123",
    ]


@pytest.mark.parametrize(
    ("changes", "speaker"),
    [
        ({}, "the user said"),
        ({"author": "ada"}, "ada said"),
        ({"metadata": {}}, "ambient noted"),
        ({"metadata": {"turn": 7, "reason": "reverted"}}, "ambient noted"),
        ({"tags": ("ambient",)}, "ambient noted"),
        ({"source": Source.IMPORT}, "import noted"),
        ({"source": Source.AGENT}, "agent noted"),
        ({"instructs": True}, "ambient noted"),
    ],
)
def test_only_text_said_by_the_person_is_attributed_to_them(changes, speaker):
    line = render_line(Entry(replace(SAID, **changes)), NOW)
    assert line.endswith(f"] {speaker}: “We use pnpm”")
    assert find_echoes(line)[0].text == "We use pnpm"


def test_a_statement_from_a_team_is_rendered_as_noted():
    assert "] ambient noted: “We use pnpm”" in render_line(Entry(SAID, team="acme"), NOW)
