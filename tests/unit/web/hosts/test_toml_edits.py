"""TOML: whatever it looks like, what is added comes out again and nothing else moves."""

import tomllib

import pytest
from hypothesis import assume, given, strategies as st

from web.hosts import toml_edits
from web.hosts.entries import CannotEdit, EntryUndo, TomlKey, TomlTable

SERVER = {"command": "/opt/reverie/bin/reverie", "args": ["mcp"], "env": {"REVERIE_HOME": "/srv/a b"}}


def is_ours(value):
    return "reverie" in str(value)


NOTIFY = TomlKey("notify", ["/opt/reverie/bin/reverie-codex-notify"], is_ours)
TABLE = TomlTable(("mcp_servers", "reverie"), SERVER, is_ours)
ENTRIES = (NOTIFY, TABLE)

VALUES = [
    "1", "-0.5e3", "true", "1979-05-27T07:32:00Z", '"text"', "'literal'", '"[not.a.header] # no comment"', '"a\\"b"',
    '""', '"""\n[not.a.header]\nnotify = 1 # "quoted" \\\n  """', "'''\nx = [\n'''", '""""inner" """', "[1, 2]",
    '[ # first\n  "a]", # second\n  [ 1,\n 2 ],\n]', '{ a = 1, "b c" = [1] }', "[]",
]  # fmt: skip
keys = st.sampled_from(["model", "a", '"quoted key"', "'x.y'", "dotted.deep", "b_1-2", '"a = b"'])
blanks = st.lists(st.sampled_from(["", "  ", "# note", "# [not.a.header]", '\t# "open']), max_size=2)
headers = st.sampled_from(
    ["[tui]", "[mcp_servers.other]", "[[profiles]]", '[projects."/home/a]b"]', "  [ spaced . out ] # x"]
)


@st.composite
def documents(draw):
    """Draw a valid TOML text with comments, strings over lines and odd blanks."""
    lines = []
    for header in [None, *draw(st.lists(headers, max_size=3))]:
        lines += draw(blanks)
        if header is not None:
            lines.append(header)
        for key in draw(st.lists(keys, max_size=3, unique=True)):
            lines += draw(blanks)
            note = draw(st.sampled_from(["", "", "  # note", " "]))
            lines.append(f"{draw(st.sampled_from(['', '  ']))}{key}{draw(st.sampled_from([' = ', '=']))}"
                         f"{draw(st.sampled_from(VALUES))}{note}")  # fmt: skip
    lines += draw(blanks)
    text = draw(st.sampled_from(["", "\ufeff"])) + "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n\n"]))
    text = text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
    try:
        tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError:
        assume(False)
    return text


@given(documents(), st.sampled_from([ENTRIES, (NOTIFY,), (TABLE,)]))
def test_toml_entry_is_removed_to_the_byte(text, entries):
    added = toml_edits.add_entries(text, entries, EntryUndo())
    assert toml_edits.remove_entries(added.text, entries, added.undo).text == text


@given(documents())
def test_adding_twice_is_adding_once(text):
    once = toml_edits.add_entries(text, ENTRIES, EntryUndo()).text
    assert toml_edits.add_entries(once, ENTRIES, EntryUndo()).text == once


@given(documents())
def test_existing_toml_entries_are_kept(text):
    after = toml_edits.parse(toml_edits.add_entries(text, ENTRIES, EntryUndo()).text)
    assert after.pop("notify") == NOTIFY.value
    assert after["mcp_servers"].pop("reverie") == SERVER
    before = toml_edits.parse(text)
    before.setdefault("mcp_servers", {})
    assert after == before


@given(documents())
def test_toml_entries_added_later_are_kept_on_removal(text):
    added = toml_edits.add_entries(text, ENTRIES, EntryUndo()).text
    meanwhile = added + '\n\n[mcp_servers.reverie.tools.recall]\napproval_mode = "approve"\n[meanwhile]\nx = 1\n'
    taken = toml_edits.parse(toml_edits.remove_entries(meanwhile, ENTRIES, None).text)
    assert taken == {**toml_edits.parse(text), "meanwhile": {"x": 1}}


def test_a_new_file_is_made_and_is_bare_again():
    added = toml_edits.add_entries(None, ENTRIES, EntryUndo())
    assert toml_edits.parse(added.text) == {"notify": NOTIFY.value, "mcp_servers": {"reverie": SERVER}}
    taken = toml_edits.remove_entries(added.text, ENTRIES, added.undo)
    assert (taken.text, taken.bare) == ("", True)


def test_a_notify_program_of_another_stays():
    text = 'notify = ["theirs"]\n'
    added = toml_edits.add_entries(text, [NOTIFY], EntryUndo())
    assert (added.text, added.remarks) == (text, ("notify was not added by Reverie and stays unchanged",))
    assert toml_edits.remove_entries(text, [NOTIFY], None).text == text


def test_old_toml_entry_is_updated_and_keeps_user_fields():
    entry = TomlTable(("mcp_servers", "reverie"), {"command": "/new/reverie", "args": ["mcp"]}, is_ours)
    text = '[mcp_servers.reverie]\ncommand = "/old/reverie" # mine\nargs = ["mcp"]\nstartup_timeout_sec = 30\n'
    assert toml_edits.add_entries(text, [entry], EntryUndo()).text == text.replace("/old", "/new")


def test_the_key_does_not_part_a_header_from_its_comment():
    text = "# about this file\n\n# the screen\n[tui]\nx = 1\n"
    assert toml_edits.add_entries(text, [NOTIFY], EntryUndo()).text == (
        '# about this file\n\nnotify = ["/opt/reverie/bin/reverie-codex-notify"]\n\n# the screen\n[tui]\nx = 1\n'
    )


@pytest.mark.parametrize("text", ["a = ", "[a", "a = 1\na = 2\n", "a = 'x", "[a]\n[a]\n", "x = [1,\n"])
def test_invalid_toml_is_not_changed(text):
    with pytest.raises(CannotEdit, match="not valid TOML"):
        toml_edits.add_entries(text, ENTRIES, EntryUndo())


@pytest.mark.parametrize("text", ["mcp_servers = {}\n", "x = 1\n[[mcp_servers]]\n", "mcp_servers = 1\n"])
def test_a_table_that_cannot_be_added_to_is_left_alone(text):
    with pytest.raises(CannotEdit, match="written in a form that Reverie does not edit"):
        toml_edits.add_entries(text, [TABLE], EntryUndo())
