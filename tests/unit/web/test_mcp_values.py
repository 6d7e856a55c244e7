"""Arguments that a host sends in another form are read as the schema wants them, and every API can take the schemas."""
# Reported of comparable tools: anthropics/claude-code#22394, anthropics/claude-code#59227, github/copilot-cli#4301

import math
from contextlib import suppress

import jsonschema
import pytest
from hypothesis import given, strategies as st

from pipeline.kernel.errors import InvalidField
from tests.unit.web.test_json_text import anything
from web.mcp.full_tools import PROFILES
from web.mcp.offered_tools import MEMORY_IS_OFF, MORE_TOOLS
from web.mcp.tool import Tool, find_tool, fit_value, validate_arguments

EVERY_TOOL = (*PROFILES["full"], MORE_TOOLS, MEMORY_IS_OFF)
NUMBERS = {"type": "array", "items": {"type": "integer"}}
WORDS = {"type": "array", "items": {"type": "string"}}
ITEMS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"content": {"type": "string"}, "weight": {"type": "number"}, "tags": WORDS},
    },
}


@pytest.mark.parametrize(
    ("schema", "sent", "read"),
    [
        # Kind: a host sends lists and objects as JSON in a text (anthropics/claude-code, Claude Desktop, mcp-remote).
        (WORDS, '["a", "b"]', ["a", "b"]),
        (ITEMS, '[{"content": "a"}]', [{"content": "a"}]),
        (ITEMS, '{"content": "a"}', [{"content": "a"}]),
        (ITEMS, ['{"content": "a", "weight": "0.5"}'], [{"content": "a", "weight": 0.5}]),
        (ITEMS, {"content": "a", "tags": "b"}, [{"content": "a", "tags": ["b"]}]),
        (WORDS, r'["half \ud83d"]', ["half \ufffd"]),
        (WORDS, "a", ["a"]),
        (WORDS, "[a", ["[a"]),
        ({"type": "integer"}, "3", 3),
        # Kind: whole numbers that went through protobuf.
        ({"type": "integer"}, 3.0, 3),
        ({"type": "integer"}, "3.0", 3),
        (NUMBERS, "[1, 2.0]", [1, 2]),
        ({"type": "number"}, "0.5", 0.5),
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "false", False),
        ({"type": "object", "properties": {}}, '{"a": 1}', {"a": 1}),
        # A text is a text, whatever it looks like.
        ({"type": "string"}, "3", "3"),
        ({"type": "string"}, '{"a": 1}', '{"a": 1}'),
    ],
)
def test_another_form_of_a_value_is_read(schema, sent, read):
    assert fit_value(schema, sent) == read
    assert type(fit_value(schema, sent)) is type(read)


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        ({"type": "integer"}, "three"),
        ({"type": "integer"}, 3.5),
        ({"type": "integer"}, "true"),
        ({"type": "integer"}, '"3"'),
        ({"type": "boolean"}, "yes"),
        ({"type": "boolean"}, 1),
        ({"type": "object", "properties": {}}, "[1]"),
        ({"type": "object", "properties": {}}, '"{}"'),
        (ITEMS, "a"),
        (ITEMS, 7),
        (WORDS, {"a": 1}),
        (WORDS, "[" * 100_000),
    ],
)
def test_value_of_another_type_is_not_changed(schema, sent):
    # One text alone is a list of that text.
    assert fit_value(schema, sent) in (sent, [sent])


@given(st.sampled_from(EVERY_TOOL), st.dictionaries(st.text(max_size=4), anything, max_size=3), st.data())
def test_no_argument_is_an_error_of_another_kind(tool, more, data):
    named = {name: data.draw(anything) for name in data.draw(st.sets(st.sampled_from([*tool.takes, "x"])))}
    with suppress(InvalidField):
        for name, value in validate_arguments(tool, more | named).items():
            if name not in tool.scalars:
                jsonschema.validate(value, {"type": tool.takes[name]["type"]})


@pytest.mark.parametrize("value", [math.nan, math.inf, "NaN", "1e999"])
def test_a_number_that_is_none_is_refused(value):
    probe = Tool("probe", "Probe.", lambda _call: None, {"count": {"type": "number"}})
    with pytest.raises(InvalidField, match="count: must be number"):
        validate_arguments(probe, {"count": value})


@pytest.mark.parametrize("hard", ["true", "false", 1, [True]])
def test_hard_deletion_accepts_only_a_boolean(hard):
    with pytest.raises(InvalidField, match="hard: must be boolean"):
        validate_arguments(find_tool(EVERY_TOOL, "forget"), {"id": "a", "hard": hard})


@pytest.mark.parametrize("value", ["5433", 5433, 0.5, True, None, "null"])
def test_a_fact_takes_every_scalar_as_it_is(value):
    given_value = {"subject": "staging", "attribute": "port", "value": value}
    assert validate_arguments(find_tool(EVERY_TOOL, "set_fact"), given_value)["value"] is value


# What the API of Gemini knows of a schema (ai.google.dev/api/caching#Schema): `type` is one name, an object has
# properties, a list its items, names only for a text. OpenAI (platform.openai.com/docs/guides/function-calling) takes
# all of this. Vertex AI wants the type of each property, and nothing next to `anyOf`.
GEMINI_TYPES = {"string", "number", "integer", "boolean", "array", "object"}
GEMINI_KEYS = {"type", "description", "enum", "items", "properties", "required", "minimum", "maximum", "pattern"}


def list_problems(schema, where):
    if not isinstance(schema.get("type"), str) or schema["type"] not in GEMINI_TYPES:
        yield f"{where}: type {schema.get('type')}"
        return
    yield from (f"{where}: {key}" for key in set(schema) - GEMINI_KEYS)
    for key, kind in (("properties", "object"), ("items", "array"), ("enum", "string")):
        if key in schema and schema["type"] != kind:
            yield f"{where}: {key} of a {schema['type']}"
    if "enum" in schema and not all(isinstance(name, str) and name for name in schema["enum"]):
        yield f"{where}: an empty name"
    if schema["type"] == "object":
        if not schema.get("properties"):
            yield f"{where}: no properties"
        if not set(schema.get("required", ())) <= set(schema.get("properties", ())):
            yield f"{where}: required, but no property"
        for name, part in schema.get("properties", {}).items():
            yield from list_problems(part, f"{where}.{name}")
    if schema["type"] == "array":
        yield from list_problems(schema.get("items", {}), f"{where}[]")


@pytest.mark.parametrize("tool", EVERY_TOOL, ids=lambda tool: tool.name)
def test_gemini_and_openai_take_the_schema(tool):
    schema = tool.input_schema
    # At the top an object without properties is a tool without arguments.
    assert (schema["type"], "additionalProperties" in schema) == ("object", False)
    problems = [one for name, part in schema["properties"].items() for one in list_problems(part, name)]
    assert problems == []
    assert set(schema.get("required", ())) <= set(schema["properties"])


@pytest.mark.parametrize(
    "schema",
    [
        {"type": ["string", "null"]},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"type": "object"},
        {"type": "array"},
        {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "object"}}}},
        {"type": "integer", "enum": [1]},
        {"const": "a", "type": "string"},
    ],
)
def test_schema_check_reports_constructs_that_apis_reject(schema):
    assert list(list_problems(schema, "x"))
