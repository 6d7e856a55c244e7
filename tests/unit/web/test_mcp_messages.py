"""Each message of a host is one that the SDK can read, or has an error for an answer."""

import json
import math

import pytest
from hypothesis import example, given, strategies as st

from tests.unit.web.test_json_text import anything
from web.mcp.messages import DEEPEST, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, Refusal, read_message

# The SDK is imported by the tests that compare with it: to collect these takes half a second less.
CALL = {"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "recall", "arguments": {"query": "x"}}}


def answers(said):
    """Return the ids and codes that a message is refused with, None for one that the SDK can read."""
    read = read_message(said if isinstance(said, bytes) else json.dumps(said).encode())
    return None if isinstance(read, str) else [(one.id, one.code) for one in read]


def nest(levels):
    return json.loads("[" * levels + "]" * levels)


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        (b"not json", [(None, PARSE_ERROR)]),
        (b'{"jsonrpc": "2.0", "id": 4, "method": "ping"', [(None, PARSE_ERROR)]),
        (b"7", [(None, INVALID_REQUEST)]),
        (b"null", [(None, INVALID_REQUEST)]),
        (b"[]", [(None, INVALID_REQUEST)]),
        ([CALL, {"jsonrpc": "2.0", "id": "b", "method": "ping"}], [(4, INVALID_REQUEST), ("b", INVALID_REQUEST)]),
        ([CALL, {"jsonrpc": "2.0", "method": "notifications/initialized"}, 7], [(4, INVALID_REQUEST)]),
        ([{"jsonrpc": "2.0", "method": "notifications/initialized"}], [(None, INVALID_REQUEST)]),
        (CALL | {"jsonrpc": "1.0"}, [(4, INVALID_REQUEST)]),
        ({"id": "a", "method": "ping"}, [("a", INVALID_REQUEST)]),
        (CALL | {"method": 7}, [(4, INVALID_REQUEST)]),
        ({"jsonrpc": "2.0", "id": 4}, [(4, INVALID_REQUEST)]),
        (CALL | {"id": None}, [(None, INVALID_REQUEST)]),
        (CALL | {"id": 1.5}, [(None, INVALID_REQUEST)]),
        (CALL | {"id": [1]}, [(None, INVALID_REQUEST)]),
        (CALL | {"params": [1]}, [(4, INVALID_PARAMS)]),
        (CALL | {"params": "x"}, [(4, INVALID_PARAMS)]),
        (CALL | {"params": {"name": nest(DEEPEST)}}, [(4, INVALID_PARAMS)]),
        (CALL | {"params": {"k": math.nan}}, [(4, INVALID_PARAMS)]),
        (json.dumps(CALL).replace('"x"', "9" * 5000).encode(), [(4, INVALID_PARAMS)]),
        (json.dumps(CALL).replace('"x"', "[" * 50_000 + "]" * 50_000).encode(), [(4, INVALID_PARAMS)]),
    ],
    ids=range(21),
)
def test_message_the_sdk_cannot_read_is_rejected_with_its_id(said, refused):
    assert answers(said) == refused


def call(**arguments):
    return CALL | {"params": {"name": "recall", "arguments": arguments}}


READY = {"jsonrpc": "2.0", "method": "notifications/initialized", "params": None}
ANSWER = {"jsonrpc": "2.0", "id": 1, "result": {}}


@pytest.mark.parametrize(
    ("said", "read"),
    [
        (CALL, CALL),
        (CALL | {"id": 4.0}, CALL),
        (CALL | {"params": {"name": "recall", "arguments": "{}"}}, call()),
        (json.dumps(CALL).replace("x", r"kiosk \ud83d").encode(), call(query="kiosk \ufffd")),
        (b"\xef\xbb\xbf" + json.dumps(CALL).encode(), CALL),
        (ANSWER, ANSWER),
        (READY, READY),
    ],
    ids=range(7),
)
def test_repairable_message_is_read(said, read):
    message = read_message(said if isinstance(said, bytes) else json.dumps(said).encode())
    assert json.loads(message) == read


messages = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | anything, "method": st.just("ping") | anything},
    optional={"id": st.integers() | anything, "params": anything, "result": anything},
)


@given(st.binary(max_size=60) | (anything | messages | st.lists(messages)).map(lambda said: json.dumps(said).encode()))
@example(b"[" * 100_000)
@example(b'{"jsonrpc":"2.0","method":"a","id":1,"params":' + b'{"a":' * 150 + b"1" + b"}" * 151)
def test_every_line_is_a_message_or_is_answered(line):
    read = read_message(line)
    if isinstance(read, str):
        message = json.loads(read)
        assert isinstance(message.get("params") or {}, dict)
        assert isinstance(message.get("id", 0), str | int)
    else:
        assert read
        for refusal in read:
            json.dumps(refusal.render(), ensure_ascii=False).encode()


def test_an_error_is_rendered_as_the_protocol_has_it():
    assert Refusal(None, PARSE_ERROR, "no JSON").render() == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": PARSE_ERROR, "message": "no JSON"},
    }
