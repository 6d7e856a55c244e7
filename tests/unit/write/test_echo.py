from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import assume, given, strategies as st
from ulid import ULID

from pipeline.kernel.kinds import render_text
from pipeline.kernel.records import HEADER, INNER_QUOTES, Kind, Source, Trust
from pipeline.kernel.records.recall import Annotations
from pipeline.prompt.render import Entry, render_block
from pipeline.text.normalize import normalize_text
from pipeline.write.prepare import Echo, find_echoes, is_echo_of
from tests.fakes.memories import PORT_DECISION

NOW = datetime(2026, 3, 1, tzinfo=UTC)
# As it was rendered before ages stood in the place of days.
LINE = "- [Q69G5FAV · decision · 2026-01-01] The port is 8123"
PORT = Echo("Q69G5FAV", "The port is 8123", cut=False)

# What the renderer's own signs look like inside a memory.
fragments = st.sampled_from(
    [
        *(
            "import noted: “",
            "“",
            "”",
            "…",
            " (stale)",
            "(stale)",
            " (contradicted by [Q69G5FAV])",
            "Lesson: ",
            "[",
            "]",
        ),
        *("\n", "  ", "- [Q69G5FAV · fact · 2026-01-01] ", "> ", "1. ", HEADER, "x" * 300, "word " * 70, "ж", "。"),
    ]
)
texts = st.lists(fragments | st.text(max_size=20), min_size=1, max_size=8).map("".join).map(normalize_text).filter(bool)
memories = st.builds(
    lambda content, source, kind, number: replace(
        PORT_DECISION,
        id=str(ULID.from_int(number)),
        content=content,
        kind=kind,
        source=source,
        trust=Trust.TRUSTED if source in {Source.USER, Source.AGENT} else Trust.EVIDENCE,
    ),
    texts,
    st.sampled_from(Source),
    st.sampled_from(Kind),
    st.integers(0, 2**128 - 1),
)


ids = st.integers(0, 2**128 - 1).map(lambda number: str(ULID.from_int(number)))
entries = st.builds(
    Entry,
    memories,
    st.builds(Annotations, stale=st.booleans(), contradicted_by=st.lists(ids, max_size=3).map(tuple)),
    st.none() | ids,
)


@given(st.lists(entries, min_size=1, max_size=4), st.datetimes(timezones=st.just(UTC)))
def test_rendered_block_is_recognized_as_an_echo(shown, now):
    block = render_block(shown, 100_000, now)[0]
    found = find_echoes(normalize_text(block))
    assert [one.short_id for one in found] == [entry.memory.id[-8:] for entry in shown]
    assert all(is_echo_of(one, render_text(entry.memory)) for one, entry in zip(found, shown, strict=True))


# Without parentheses, colons and ellipses a text holds nothing that the renderer might have added.
plain_texts = st.text("ab “”\n'ж[].", min_size=1, max_size=30).map(normalize_text).filter(bool)


@given(memories, plain_texts, plain_texts)
def test_a_line_is_no_echo_of_a_memory_that_says_something_else(memory, content, other):
    said, others = (" ".join(text.split()).translate(INNER_QUOTES) for text in (content, other))
    [line] = find_echoes(render_block([Entry(replace(memory, content=content))], 100_000, NOW)[0])
    assert is_echo_of(line, render_text(replace(memory, content=other))) == (said == others)


@given(st.text(max_size=300))
def test_a_text_without_a_head_is_no_echo(content):
    assume("[" not in content)
    assert find_echoes(content) == ()


@pytest.mark.parametrize(
    "content",
    [
        LINE,
        f"{HEADER}\n{LINE}",
        f"\n{HEADER}\n\n{LINE}\n",
        f"> {HEADER}\n> {LINE}",
        f"> > {LINE}",
        f"1. {LINE[2:]}",
        f"2) {LINE[2:]}",
        f"* {LINE[2:]}",
        LINE[2:],
        f"  {LINE}  ",
        "- [Q69G5FAV] The port is 8123",
        "- **[Q69G5FAV · decision · 2026-01-01]** The port is 8123",
        "- [Q69G5FAV · decision · 2026-01-01 · used 3 times] The port is 8123",
        "- [Q69G5FAV · decision · 3 h ago] The port is 8123",
        "- [Q69G5FAV · decision · just now] The port is 8123",
        "- [Q69G5FAV · goal · 2 days ago, due in 5 days] The port is 8123",
        "- [Q69G5FAV · fact · 2026-01-01] ambient noted: “The port is 8123”",
        f"{LINE} (stale)",
        f"{LINE} (contradicted by [01BX5ZZK])",
        f"{LINE} (stale; contradicted by [01BX5ZZK], [01BX5ZZM]; surface 01ARZ3NDEKTSV4RRFFQ69G5FAV)",
        f"{LINE} (stale) (superseded by 01BX5ZZK; stale since 2026-02-03)",
        "- [Q69G5FAV · fact · 2026-01-01] ambient noted: “The port is 8123” (stale)",
        "- [Q69G5FAV · lesson · 2026-01-01] Lesson: The port is 8123",
        "- Lesson [Q69G5FAV · lesson · 2026-01-01] The port is 8123",
    ],
)
def test_a_rendered_line_is_recognised_in_every_dress(content):
    assert find_echoes(content) == (PORT,)
    assert is_echo_of(PORT, "The  port\nis 8123")


@pytest.mark.parametrize(
    "content",
    [
        "The port is 8123",
        HEADER,
        f"{LINE}\nand we changed it to 9000 today",
        f"Noted by the tool:\n{LINE}",
        f"{HEADER} {LINE}",
        "- [the port] is 8123",
        "- [ ] write the test",
        "- [x] write the test",
        "[Q69G5FAVX] The port is 8123",
        "[q69g5fav · fact · 2026-01-01] The port is 8123",
        "- [Q69G5FAV · fact · 2026-01-01]",
        "[INFO] 2026-01-01 listening",
        "",
    ],
)
def test_anything_else_is_no_echo(content):
    assert find_echoes(content) == ()


@pytest.mark.parametrize(
    "said", ["The port is 8123 (no longer true)", "False: The port is 8123", "The port is 81234", "The port is 812"]
)
def test_echo_with_an_added_or_changed_word_is_new(said):
    [line] = find_echoes(f"- [Q69G5FAV · decision · 2026-01-01] {said}")
    assert not is_echo_of(line, "The port is 8123")


def test_a_cut_line_is_recognised_by_its_beginning():
    memory = replace(PORT_DECISION, content="word " * 1000, trust=Trust.EVIDENCE, source=Source.IMPORT)
    [line] = find_echoes(render_block([Entry(memory)], 10_000, NOW)[0])
    assert line.cut
    assert is_echo_of(line, render_text(memory))
    assert not is_echo_of(line, "word " * 20)
    assert not is_echo_of(line, "other " + memory.content)


def test_an_ellipsis_alone_begins_no_memory():
    [line] = find_echoes("- [Q69G5FAV · fact · 2026-01-01] …")
    assert line == Echo("Q69G5FAV", "…", cut=False)
    assert not is_echo_of(line, "The port is 8123")


@pytest.mark.parametrize(
    "content",
    [
        "[" * 10_000,
        "> " * 5_000,
        "[Q69G5FAV " + "·" * 9_900,
        "[Q69G5FAV] x" + " (stale)" * 1_200,
        "[Q69G5FAV] x" + " (stale" * 1_200,
        "[Q69G5FAV] " + "lesson: " * 1_200,
        "[Q69G5FAV] a noted: “" * 450,
        f"{LINE}\n" * 180,
    ],
)
def test_hostile_text_of_full_length_is_read(content):
    assert all(is_echo_of(one, one.text) or one.cut for one in find_echoes(content))


def test_invisible_character_next_to_a_quotation_mark_is_ignored():
    memory = replace(PORT_DECISION, content="import noted: “\u00adimport", source=Source.AMBIENT, trust=Trust.EVIDENCE)
    (echo,) = find_echoes(normalize_text(render_block([Entry(memory)], 1000, NOW)[0]))
    assert is_echo_of(echo, render_text(memory))
