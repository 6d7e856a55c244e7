"""One bad field of an event costs only itself, and a long event is sent with all that the server reads."""

import io
import json
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from pipeline.kernel.records import MAX_FOLDER_CHARS, MAX_SESSION_ID_CHARS, OWNED
from tests.fakes.properties import examples
from tests.unit.web.test_json_text import anything
from web.hooks import client
from web.hooks.event import MAX_SAID_CHARS, MOST_SAID, HookEvent, read_event
from web.hooks.event_fields import shorten_event, unify_fields
from web.http.json_text import read_object

MOST = 1 << 20
CLEAN = {
    "hook_event_name": "PreToolUse",
    "session_id": "s1",
    "cwd": "/p/shop",
    "tool_name": "Bash",
    "tool_input": {"command": "git push --force"},
}


def read(fields):
    return read_event(unify_fields(read_object(json.dumps(fields).encode())).fields, can_ask=True)


@given(st.dictionaries(st.sampled_from([*CLEAN, "prompt", "said", "source", "agent_id", "transcript_path"]), anything))
def test_a_bad_field_leaves_the_others_as_they_are(bad):
    clean, event = read(CLEAN), read(CLEAN | bad)
    for name in ("cwd", "session_id", "tool_name", "tool_input"):
        if name not in bad:
            assert getattr(event, name) == getattr(clean, name)
    assert event.dropped <= set(bad)


def test_null_is_as_good_as_absent():
    nulls = dict.fromkeys(HookEvent.__slots__)
    assert read(nulls) == read({})
    assert read(CLEAN | {"transcript_path": None, "agent_id": None}) == read(CLEAN)


@pytest.mark.parametrize(
    ("field", "value", "kept"),
    [
        ("session_id", "s" * MAX_SESSION_ID_CHARS, True),
        ("session_id", "s" * (MAX_SESSION_ID_CHARS + 1), False),
        ("session_id", f"a{OWNED}b", False),
        ("cwd", "/" * (MAX_FOLDER_CHARS + 1), False),
        ("prompt", "x" * 100_000, True),
        ("tool_name", ["Bash"], False),
        ("tool_input", ["make"], False),
        ("said", "text", False),
    ],
)
def test_unreadable_event_field_is_dropped_and_named(field, value, kept):
    event = read({field: value})
    assert event.dropped == (frozenset() if kept else {field})
    assert bool(getattr(event, field)) == kept


def test_a_number_is_an_id_and_half_a_character_is_replaced():
    event = read({"session_id": 7, "agent_id": "a\ud83d"})
    assert (event.session_id, event.agent_id) == ("7", "a\ufffd")


def test_arguments_that_are_sent_as_a_text_are_read():
    assert read({"tool_input": json.dumps({"command": "make"})}).tool_input == {"command": "make"}
    assert read({"tool_input": json.dumps({"command": "\ud83d"})}).tool_input == {"command": "\ufffd"}
    assert read({"tool_input": "make test"}).tool_input == {"command": "make test"}


def test_invalid_messages_of_an_event_are_dropped_separately():
    said = [
        {"role": "user", "content": "x" * (MAX_SAID_CHARS + 1), "at": "soon"},
        {"role": "nobody", "content": "x"},
        7,
    ]
    event = read({"said": said})
    assert event.said == ({"role": "user", "content": "x" * MAX_SAID_CHARS},)
    assert event.dropped == {"said"}
    many = [{"role": "user", "content": str(number)} for number in range(MOST_SAID + 5)]
    assert [one["content"] for one in read({"said": many}).said] == [str(n) for n in range(5, MOST_SAID + 5)]


# Kinds: VS Code's agent hooks, GitHub Copilot CLI, Cursor's hooks.
@pytest.mark.parametrize(
    "fields",
    [
        {"hookEventName": "PreToolUse", "sessionId": "s1", "toolName": "Bash", "toolInput": {"command": "make"}},
        {"hook_event_name": "preToolUse", "sessionId": "s1", "toolName": "Bash", "toolArgs": '{"command": "make"}'},
        {
            "hook_event_name": "preToolUse",
            "conversation_id": "s1",
            "tool_name": "Bash",
            "tool_input": {"command": "make"},
        },
    ],
)
def test_other_spellings_of_the_same_fields_are_read(fields):
    event = read(fields | {"workspace_roots": ["/p/shop"]})
    assert (event.name, event.session_id, event.tool_name) == ("PreToolUse", "s1", "Bash")
    assert (event.tool_input, event.cwd) == ({"command": "make"}, "/p/shop")


def shorten(event):
    shortened = shorten_event(json.dumps(event).encode(), MOST)
    assert len(shortened) <= MOST
    return json.loads(shortened)


LONG = "é" * (2 * MOST)


@pytest.mark.parametrize(
    "fields",
    [
        {"tool_name": "Write", "tool_input": {"content": LONG, "file_path": "/p/shop/data/ledger.json"}},
        {"tool_name": "Edit", "tool_input": {"file_path": "/p/a.py", "old_string": LONG, "new_string": LONG}},
        {"tool_name": "Edit", "tool_input": {"edits": [{"a": "b"}] * 200_000, "file_path": "/p/a.py"}},
        {"tool_input": {"command": "make"}, "extra": {LONG: LONG}, "tool_name": "Bash"},
        {"tool_response": [[LONG]], "tool_name": "Edit", "tool_input": {"path": "/p/a.py"}},
        {"tool_name": "Edit", "toolInput": json.dumps({"content": LONG, "path": "/p/a.py"})},
    ],
)
def test_shortened_event_keeps_names_and_touched_files(fields):
    event = (
        CLEAN | fields if "toolInput" not in fields else {k: v for k, v in CLEAN.items() if k != "tool_input"} | fields
    )
    sent, whole = read(shorten(event)), read(event)
    assert (sent.name, sent.session_id, sent.cwd, sent.tool_name) == (whole.name, "s1", "/p/shop", whole.tool_name)
    touched = {"command", "path", "file_path"} & set(whole.tool_input)
    assert touched
    assert {name: sent.tool_input[name] for name in touched} == {name: whole.tool_input[name] for name in touched}
    assert sent.dropped == set()


def test_of_a_long_text_the_start_and_the_end_are_sent():
    command = f"cat > notes <<EOF\n{LONG}\nEOF\ngit push --force"
    sent = shorten(CLEAN | {"tool_input": {"command": command}, "prompt": f"Remember {LONG} this"})
    assert sent["tool_input"]["command"].startswith("cat > notes <<EOF\n")
    assert sent["tool_input"]["command"].endswith("\nEOF\ngit push --force")
    assert (sent["prompt"][:8], sent["prompt"][-4:]) == ("Remember", "this")


def test_an_id_is_never_cut():
    assert "session_id" not in {name for name, value in shorten(CLEAN | {"session_id": LONG}).items() if value}


def test_arguments_that_were_lost_are_not_taken_for_none():
    text = json.dumps(CLEAN | {"tool_input": {"content": LONG, "file_path": "/p/a.py"}}).encode()
    assert read(json.loads(shorten_event(text[: 2 * MOST], MOST))).dropped == {"tool_input"}


@examples(30)
@given(
    st.dictionaries(st.sampled_from([*CLEAN, "said", "prompt"]), anything | st.just([["x"] * 3] * 1000)),
    st.integers(1, MOST),
)
def test_any_long_event_is_shortened_to_json(fields, size):
    shorten(fields | {"fill": "x" * (MOST + size)})


@pytest.mark.parametrize("size", [10, MOST, MOST + 1, 5 * MOST])
@pytest.mark.parametrize("longest", [client.LONGEST_READ, MOST])
def test_the_client_reads_all_of_its_input(monkeypatch, size, longest):
    given_input = io.BytesIO(json.dumps(CLEAN | {"fill": "x" * size}).encode())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=given_input))
    monkeypatch.setattr(client, "LONGEST_READ", longest)
    event = json.loads(client.read_event())
    assert {name: event[name] for name in CLEAN} == CLEAN
    assert given_input.read() == b""
