"""JSON with comments: whatever it looks like, what is added comes out again and nothing else moves."""

import json

import pytest
from hypothesis import given, strategies as st

from web.hosts import json_edits
from web.hosts.entries import CannotEdit, EntryUndo, HookEntry, JsonMember

SERVER = {"command": "/opt/reverie/bin/reverie", "args": ["mcp"]}


def read(text):
    return json_edits.JsoncDocument.read(text).root.value


def is_ours(value):
    return isinstance(value, dict) and value.get("command") == SERVER["command"]


MEMBER = JsonMember(("mcpServers",), "reverie", SERVER, is_ours)
STOP = HookEntry("Stop", {"type": "command", **SERVER}, is_ours)
START = HookEntry("SessionStart", {"type": "command", **SERVER}, is_ours)
ENTRIES = (MEMBER, STOP, START)

blanks = st.lists(
    st.sampled_from([" ", "  ", "\t", "\n", "\r\n", "\n  ", "// note\n", '/* a, "b": {} */', '// it\'s, "x": [\n    ']),
    max_size=3,
).map("".join)
keys = st.sampled_from(["a", "b", "théâtre", "x y", 'quo"te', "//", "mcpServers ", "reverie"])
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 10**20),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=6),
)


@st.composite
def documents(draw, depth=0, *, kind=None):
    """Draw a JSON text written as nobody would: blanks, comments and trailing commas everywhere."""
    kind = kind or draw(st.sampled_from(["object", "array", "scalar", "scalar"] if depth < 3 else ["scalar"]))
    if kind == "scalar":
        return json.dumps(draw(scalars), ensure_ascii=draw(st.booleans()))
    names = []
    if kind == "object":
        names = draw(st.lists(keys, max_size=3, unique=True))
        parts = [f"{json.dumps(k)}{draw(blanks)}:{draw(blanks)}{draw(documents(depth=depth + 1))}" for k in names]
        if depth == 0:
            for key in draw(st.lists(st.sampled_from(["mcpServers", "hooks"]), unique=True)):
                parts.insert(draw(st.integers(0, len(parts))), f'"{key}":{draw(special(key))}')
    else:
        parts = [draw(documents(depth=depth + 1)) for _ in range(draw(st.integers(0, 3)))]
    text = ",".join(draw(blanks) + part + draw(blanks) for part in parts)
    if parts and draw(st.booleans()):
        text += "," + draw(blanks)
    opening, closing = "{}" if kind == "object" else "[]"
    return opening + (text if parts else draw(blanks)) + closing


@st.composite
def special(draw, key):
    if key == "mcpServers":
        return draw(documents(depth=2, kind="object").filter(lambda text: "reverie" not in read(text)))
    inner = draw(documents(depth=2, kind="array"))
    return draw(
        st.sampled_from([f"{{{draw(blanks)}}}", f'{{{draw(blanks)}"Stop"{draw(blanks)}:{inner}{draw(blanks)}}}'])
    )


whole = st.builds(
    lambda mark, before, body, after: mark + before + body + after,
    st.sampled_from(["", "\ufeff"]),
    blanks,
    documents(kind="object"),
    blanks,
)


@given(whole, st.sampled_from([ENTRIES, ENTRIES[:1], ENTRIES[1:], ENTRIES[::-1]]))
def test_json_entry_is_removed_to_the_byte(text, entries):
    added = json_edits.add_entries(text, entries, EntryUndo())
    assert json_edits.remove_entries(added.text, entries, added.undo).text == text


@given(whole)
def test_adding_twice_is_adding_once(text):
    once = json_edits.add_entries(text, ENTRIES, EntryUndo())
    twice = json_edits.add_entries(once.text, ENTRIES, once.undo)
    assert (twice.text, twice.undo) == (once.text, once.undo)


@given(whole)
def test_existing_json_entries_are_kept(text):
    before = read(text)
    after = read(json_edits.add_entries(text, ENTRIES, EntryUndo()).text)
    assert after["mcpServers"].pop("reverie") == SERVER
    assert after["hooks"]["Stop"].pop() == {"hooks": [STOP.handler]}
    assert after["hooks"].pop("SessionStart") == [{"hooks": [START.handler]}]
    for key, empty in (("hooks", {}), ("mcpServers", {})):
        before.setdefault(key, empty)
    before["hooks"].setdefault("Stop", [])
    assert after == before


@given(whole, keys, st.booleans())
def test_json_entries_added_later_are_kept_on_removal(text, key, first):
    added = json_edits.add_entries(text, ENTRIES, EntryUndo())
    document = json_edits.JsoncDocument.read(added.text)
    key = f"meanwhile {key}"
    meanwhile = document.insert(document.root, key, {"x": [1]}).text
    taken = read(json_edits.remove_entries(meanwhile, ENTRIES, added.undo).text)
    assert taken == {**read(text), key: {"x": [1]}}


@given(whole)
def test_without_a_record_at_most_empty_containers_are_lost(text):
    added = json_edits.add_entries(text, ENTRIES, EntryUndo())
    before, after = (read(t) for t in (text, json_edits.remove_entries(added.text, ENTRIES, None).text))
    assert "reverie" not in after.get("mcpServers", {})
    assert {k: v for k, v in before.items() if k not in ("mcpServers", "hooks")} == {
        k: v for k, v in after.items() if k not in ("mcpServers", "hooks")
    }


@given(documents())
def test_json_reader_agrees_with_the_standard_library(text):
    try:
        known = json.loads(text)
    except ValueError:
        return
    assert read(text) == known


@pytest.mark.parametrize(
    "text",
    ['{"a": 1', '{"a" 1}', "{a: 1}", "{'a': 1}", '{"a": 1}}', '{"a": tru}', '{"a": 01}', "{,}", '{"a": 1,,}',
     '{"a": "\n"}', '{"a": 1} /* open', '{"a": NaN}', "[" * 300 + "]" * 300, '{"a": ' + "9" * 5000 + "}"],
)  # fmt: skip
def test_invalid_json_is_not_changed(text):
    with pytest.raises(CannotEdit, match="not valid JSON"):
        json_edits.add_entries(text, ENTRIES, EntryUndo())


@pytest.mark.parametrize(
    "text", ['{"mcpServers": []}', '{"mcpServers": null}', "[]", '"text"', '{"hooks": {"Stop": {}}}']
)
def test_another_shape_than_the_host_takes_is_left_alone(text):
    with pytest.raises(CannotEdit, match="something other than an"):
        json_edits.add_entries(text, ENTRIES, EntryUndo())


def test_a_server_of_the_same_name_that_is_not_ours_stays():
    text = '{"mcpServers": {"reverie": {"command": "other"}}}'
    added = json_edits.add_entries(text, [MEMBER], EntryUndo())
    assert added.text == text
    assert added.remarks == ("mcpServers.reverie was not added by Reverie and stays unchanged",)
    assert json_edits.remove_entries(text, [MEMBER], added.undo).text == text


def test_old_json_entry_is_updated_and_keeps_user_fields():
    server = '{"command": "/opt/reverie/bin/reverie", "args": ["old"], "disabled": true}'
    text = f'{{\n    "mcpServers": {{\n        "reverie": {server}\n    }}\n}}\n'
    added = json_edits.add_entries(text, [MEMBER], EntryUndo())
    assert added.text == text.replace('"old"', '"mcp"')


def test_a_handler_that_the_user_moved_into_another_group_is_found_there():
    text = json.dumps(
        {"hooks": {"Stop": [{"matcher": "x", "hooks": [{"type": "command", "command": "theirs"}, STOP.handler]}]}}
    )
    assert json_edits.add_entries(text, [STOP], EntryUndo()).text == text
    assert read(json_edits.remove_entries(text, [STOP], None).text) == {
        "hooks": {"Stop": [{"matcher": "x", "hooks": [{"type": "command", "command": "theirs"}]}]}
    }


def test_a_blank_file_is_blank_again():
    added = json_edits.add_entries(" \n", [MEMBER], EntryUndo())
    assert read(added.text) == {"mcpServers": {"reverie": SERVER}}
    assert json_edits.remove_entries(added.text, [MEMBER], added.undo).text == " \n"


def test_json_entry_follows_indentation_line_ends_and_comments():
    text = '{\n\t"mcpServers": {\n\t\t"a": {}, // the first\n\t},\n}\n'
    wanted = (
        '{\n\t"mcpServers": {\n\t\t"a": {}, // the first\n\t\t"reverie": {\n'
        '\t\t\t"command": "/opt/reverie/bin/reverie",'
        '\n\t\t\t"args": [\n\t\t\t\t"mcp"\n\t\t\t]\n\t\t},\n\t},\n}\n'
    )
    for newline in ("\n", "\r\n"):
        given_text = text.replace("\n", newline)
        assert json_edits.add_entries(given_text, [MEMBER], EntryUndo()).text == wanted.replace("\n", newline)


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers":{"a":1/* x *//* y */,},"b":{}}',
        '{\n"mcpServers":{\n"a":1 /* x *//* y */,}}',
        '{"mcpServers":{\n"Stop":[]/* a */},"a":{}}/* b */\n',
    ],
)
def test_comments_that_touch_are_no_line_comment(text):
    added = json_edits.add_entries(text, ENTRIES, EntryUndo())
    assert json_edits.remove_entries(added.text, ENTRIES, added.undo).text == text


def test_line_comment_before_a_removed_entry_keeps_the_rest():
    text = '{"mcpServers": { // note\n  "reverie": {"command": "/opt/reverie/bin/reverie"}, "b": 1 }}'
    assert json_edits.remove_entries(text, [MEMBER], None).text == '{"mcpServers": { // note\n   "b": 1 }}'
