"""The converters of Google's and OpenAI's own packages take the schema of every tool.

`.ci/test-clients` runs it in an environment of its own; TOOLS_FILE names the answer to `tools/list`.
"""

import copy
import json
import os
from pathlib import Path

import pytest
from google.genai import types
from openai.lib._pydantic import _ensure_strict_json_schema

TOOLS = json.loads(Path(os.environ["TOOLS_FILE"]).read_text(encoding="utf-8"))
REFUSED = {"$ref", "anyOf", "oneOf", "allOf", "additionalProperties", "const"}


def list_schemas(schema):
    """Yield a schema and those within it."""
    yield schema
    for part in schema.get("properties", {}).values():
        yield from list_schemas(part)
    if "items" in schema:
        yield from list_schemas(schema["items"])


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool["name"])
def test_converters_take_the_schema(tool):
    schema = tool["inputSchema"]
    for part in list_schemas(schema):
        assert REFUSED.isdisjoint(part)
        assert isinstance(part["type"], str)
    read = types.Schema.from_json_schema(
        json_schema=types.JSONSchema.model_validate(schema),
        api_option="GEMINI_API",
        raise_error_on_unsupported_field=True,
    )
    assert set(read.properties or {}) == set(schema["properties"])
    strict = copy.deepcopy(schema)
    assert _ensure_strict_json_schema(strict, path=(), root=strict)["additionalProperties"] is False
