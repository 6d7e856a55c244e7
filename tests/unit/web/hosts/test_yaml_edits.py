"""An entry of a mapping in a YAML text: everything else stays to the byte, and it can be taken out again."""

import json

import pytest
import yaml
from hypothesis import given, strategies as st

from web.hosts import yaml_edits
from web.hosts.command_line_agents import is_our_extension
from web.hosts.entries import CannotEdit, EntryUndo, JsonMember

VALUE = {"enabled": True, "cmd": "/opt/bin/reverie", "args": ["mcp"], "envs": {}}
ENTRIES = [JsonMember(("extensions",), "reverie", VALUE, is_our_extension)]


def add(text, undo=None):
    return yaml_edits.add_entries(text, ENTRIES, undo or EntryUndo())


def remove(text, undo):
    return yaml_edits.remove_entries(text, ENTRIES, undo)


@st.composite
def configurations(draw):
    """Texts as a host and its user write them: comments, blank lines, any indentation, other extensions."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    indent = " " * draw(st.integers(1, 5))
    noise = st.sampled_from(["", "# mine"])
    lines = [draw(noise), "GOOSE_MODE: auto", draw(noise)]
    members = draw(st.sampled_from([None, [], ["memory"], ["memory", "developer"]]))
    if members is not None:
        lines += [draw(st.sampled_from(["extensions:", "extensions: # some", "'extensions':"]))]
        for name in members:
            lines += [f"{indent}{name}:", f"{indent * 2}enabled: false # {name}", f"{indent * 2}args: [a, b]"]
            lines += [draw(st.sampled_from(["", f"{indent}# more"]))]
    lines += draw(st.sampled_from([[], ["", "slash_commands: []"], ["otel: {a: 1}", ""]]))
    return newline.join(lines) + draw(st.sampled_from(["", newline]))


@given(configurations())
def test_it_comes_and_goes_to_the_byte(text):
    added = add(text)
    before, after = yaml.safe_load(text), yaml.safe_load(added.text)
    assert after["extensions"].pop("reverie") == VALUE
    assert after == {**before, "extensions": before.get("extensions") or {}}
    assert add(added.text, added.undo).text == added.text
    assert remove(added.text, added.undo).text == text


@given(configurations())
def test_yaml_fields_added_by_the_user_are_kept_by_the_next_setup(text):
    added = add(text)
    theirs = added.text.replace('"/opt/bin/reverie"', '"/old/reverie"').replace("envs: {}", "timeout: 9")
    again = add(theirs, added.undo)
    assert yaml.safe_load(again.text)["extensions"]["reverie"] == VALUE | {"timeout": 9}
    assert remove(again.text, again.undo).text == text


@pytest.mark.parametrize("text", [None, "", "\n", "  \n\n"])
def test_an_empty_file_is_empty_again(text):
    added = add(text)
    assert yaml.safe_load(added.text) == {"extensions": {"reverie": VALUE}}
    removed = remove(added.text, added.undo)
    assert (removed.text, removed.bare) == (text or "", True)


def test_removing_an_unrecorded_yaml_entry_removes_its_empty_mapping():
    assert remove(add("a: 1\n").text, None).text == "a: 1\n"


def test_foreign_yaml_entry_is_kept():
    text = "extensions:\n  reverie:\n    cmd: npx\n"
    added = add(text)
    assert added.text == text
    assert "was not added by Reverie" in added.remarks[0]
    assert remove(text, EntryUndo()).text == text


@pytest.mark.parametrize(
    "text",
    [
        "extensions: {a: {cmd: x}}\n",
        "{extensions: }\n",
        "- a\n",
        "a: [\n",
        "extensions: [x]\n",
        "a: 1\n---\nb: 2\n",
        "\ufeffa: 1\n",
    ],
)
def test_a_text_in_another_form_is_not_touched(text):
    with pytest.raises(CannotEdit):
        add(text)


def test_every_value_is_written_so_that_yaml_reads_it_back():
    value = VALUE | {"cmd": 'C:\\a "b"\\reverie', "envs": {"REVERIE_HOME": "/srv/ann's: #memory"}}
    text = yaml_edits.add_entries(
        "", [JsonMember(("extensions",), "reverie", value, is_our_extension)], EntryUndo()
    ).text
    assert json.loads(json.dumps(yaml.safe_load(text))) == {"extensions": {"reverie": value}}
