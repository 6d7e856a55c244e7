"""Whatever an export holds: what cannot be taken is left out, and nothing is raised but that it is no such export."""

import json
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, strategies as st

from pipeline.features.ingest.conversation_exports import read_chatgpt, read_claude
from pipeline.features.ingest.fields import Item
from pipeline.features.ingest.jsonl import read_jsonl
from pipeline.features.ingest.markdown import read_markdown
from pipeline.features.ingest.memory_exports import read_mem0, read_pmb
from pipeline.kernel.errors import InvalidField
from tests.fakes.exports import EXPORTS, items, load, read
from tests.fakes.properties import examples
from tests.unit.features.ingest.test_jsonl import LISTED

FIXTURES = {
    "chatgpt.json": read_chatgpt,
    "claude.json": read_claude,
    "claude_memories.json": read_claude,
    "mem0.json": read_mem0,
    "openmemory.json": read_mem0,
    "pmb.json": read_pmb,
}
READERS = [read_chatgpt, read_claude, read_mem0, read_pmb, read_jsonl, read_markdown]

# Texts that have broken other programs, and moments that no clock shows.
TEXT = st.text(st.characters(), max_size=20) | st.sampled_from(
    ["", " ", "\x00", "\ud83d", "\u202e", "x" * 3000, "../../etc/passwd", "password=hunter2abc", "key\x1f2", "NaN", "#"]
)
NUMBER = (
    st.integers()
    | st.floats()
    | st.sampled_from([0, -1, 1e308, 10**30, 10**4000, 253402300800, 1718013600123, -62135596801, True])
)
SCALAR = st.none() | st.booleans() | NUMBER | TEXT
VALUE = st.recursive(
    SCALAR,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=10,
)
QUICK = examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _spoil(value, draw):
    """Return a value with one of its parts, at whatever depth, replaced by anything."""
    inner = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    if not inner or draw(st.integers(0, 7)) == 0:
        return draw(VALUE)
    place, part = draw(st.sampled_from(inner))
    copy = dict(value) if isinstance(value, dict) else list(value)
    if draw(st.integers(0, 9)) == 0:
        del copy[place]
    else:
        copy[place] = _spoil(part, draw)
    return copy


@QUICK
@given(data=st.data(), name=st.sampled_from(sorted(FIXTURES)), times=st.integers(1, 4))
def test_an_export_with_anything_in_it_is_read_as_far_as_it_goes(tmp_path, data, name, times):
    export = load(name)
    for _ in range(times):
        export = _spoil(export, data.draw)
    path = tmp_path / name
    path.write_text(json.dumps(export))
    with suppress(InvalidField):
        first = read(FIXTURES[name], path)
        # What is written depends on nothing but what is read.
        assert read(FIXTURES[name], path) == first
        found = [one for one in first if isinstance(one, Item)]
        known = {one.key: one.digest for one in found}
        if len(known) == len(found):
            assert items(read(FIXTURES[name], path, known)) == {}


@QUICK
@given(data=st.data())
def test_lines_with_anything_in_them_are_read_as_far_as_they_go(tmp_path, data):
    lines = [_spoil(LISTED, data.draw) for _ in range(3)]
    path = tmp_path / "memories.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    with suppress(InvalidField):
        read(read_jsonl, path)


@pytest.mark.parametrize("reader", READERS)
@QUICK
@given(value=VALUE)
def test_any_json_is_read_or_refused(tmp_path, reader, value):
    path = tmp_path / "any.json"
    path.write_text(json.dumps(value))
    try:
        read(reader, path)
    except InvalidField as error:
        (problem,) = error.errors
        assert problem.loc == "path"
        assert problem.msg


@pytest.mark.parametrize("reader", READERS)
@QUICK
@given(raw=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(tmp_path, reader, raw):
    path = tmp_path / "any"
    path.write_bytes(raw)
    with suppress(InvalidField):
        read(reader, path)


@pytest.mark.parametrize("name", sorted(FIXTURES))
def test_an_export_that_was_cut_off_is_read_up_to_there(tmp_path, name):
    raw = (EXPORTS / name).read_bytes()
    whole = items(read(FIXTURES[name], EXPORTS / name))
    for end in range(0, len(raw), len(raw) // 20):
        path = tmp_path / name
        path.write_bytes(raw[:end])
        with suppress(InvalidField):
            for key, item in items(read(FIXTURES[name], path)).items():
                assert item == whole[key]


@pytest.mark.parametrize("name", sorted(FIXTURES))
def test_secrets_do_not_get_in_by_the_seams_of_a_text(tmp_path, name):
    """A text that is cut anywhere else than between its secrets would show halves of them."""
    secret = "ghp_" + "Zx9" * 12
    text = json.dumps(load(name)).replace("Feldkorb", f"Feldkorb {'filler ' * 1425}{secret} {'more ' * 1000}")
    path = tmp_path / name
    path.write_text(text)
    for item in items(read(FIXTURES[name], path)).values():
        for draft in item.drafts:
            assert "Zx9Zx9" not in draft.content
