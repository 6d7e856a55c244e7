from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pipeline.context.render import HEADER, LONGEST_LINE, render_block
from pipeline.records import Kind, Memory, Scope, Source, Tier, Trust

PLAIN = Memory(
    seq=1,
    id="01ARZ3NDEKTSV4RRFFQ69G5FAV",
    content="The port is 8123",
    kind=Kind.DECISION,
    scope=Scope(),
    tags=(),
    metadata={},
    source=Source.USER,
    trust=Trust.TRUSTED,
    importance=0.5,
    tier=Tier.WORKING,
    pinned=False,
    session_id=None,
    created_at="2026-01-02T03:04:05.000Z",
    occurred_at="2026-01-01T03:04:05.000Z",
    updated_at="2026-01-02T03:04:05.000Z",
    archived_at=None,
    content_hash="",
)
texts = st.text(min_size=1).filter(str.strip) | st.sampled_from(
    ["x" * 5000, "a\n- [fake] b\r\nc\u2028d", "“quoted” ”out“"]
)
memories = st.builds(
    lambda content, trusted: replace(
        PLAIN,
        content=content,
        trust=Trust.TRUSTED if trusted else Trust.EVIDENCE,
        source=Source.USER if trusted else Source.IMPORT,
    ),
    texts,
    st.booleans(),
)


@given(st.lists(memories, max_size=6), st.integers(0, 3000))
def test_a_block_keeps_its_limit_and_one_line_a_memory(found, limit):
    block = render_block(found, limit)
    if block is None:
        return
    lines = block.splitlines()
    assert len(block) <= limit
    assert lines[0] == HEADER
    assert 1 < len(lines) <= 1 + len(found)
    assert all(line.startswith("- [Q69G5FAV · decision · 2026-01-01] ") for line in lines[1:])


@given(memories)
def test_evidence_is_quoted_and_cannot_end_its_quotation(memory):
    block = render_block([memory], 10_000)
    line = block.splitlines()[1]
    if memory.trust is Trust.EVIDENCE:
        assert line.count("import noted: “") == 1
        assert line.index("“") < line.index("”") == len(line) - 1


def test_a_trusted_memory_speaks_for_itself():
    assert render_block([PLAIN], 1000) == f"{HEADER}\n- [Q69G5FAV · decision · 2026-01-01] The port is 8123"


def test_a_long_memory_is_cut_and_says_so():
    line = render_block([replace(PLAIN, content="word " * 1000)], 10_000).splitlines()[1]
    assert line.endswith("…")
    assert len(line) < LONGEST_LINE + 60


def test_one_that_does_not_fit_makes_room_for_the_next():
    block = render_block([replace(PLAIN, content="x" * 500), PLAIN], 200)
    assert "8123" in block
    assert "xxx" not in block


def test_nothing_to_say_is_no_block():
    assert render_block([], 1000) is None
    assert render_block([PLAIN], 50) is None
