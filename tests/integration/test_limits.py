"""Every field has a limit, and what is beyond it is turned away before anything is done with it."""

import json
from itertools import product

import pytest

from pipeline.kernel.records import MAX_FOLDER_CHARS, MAX_METADATA_BYTES, MAX_SESSION_ID_CHARS
from pipeline.write import fields
from web.http.endpoint import MAX_PATH_PART_CHARS

BOUNDED_TEXT = {"maxLength", "pattern", "enum", "const", "format"}
# JSON of a caller's own: what stands around it has a limit in bytes, which the tests below try.
OWN_JSON = "#/components/schemas/JsonValue"


class Walk:
    """Collects what of a document's requests has no limit."""

    def __init__(self, schemas):
        self.schemas = schemas
        self.seen = set()
        self.unbounded = []

    def walk(self, schema, where):
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            if name not in self.seen:
                self.seen.add(name)
                self.walk(self.schemas[name], name)
            return
        for part in (one for key in ("anyOf", "oneOf", "allOf") for one in schema.get(key, ())):
            self.walk(part, where)
        self.check(schema, where)
        for name, field in schema.get("properties", {}).items():
            self.walk(field, f"{where}.{name}")
        for item in (*schema.get("prefixItems", ()), *filter(None, [schema.get("items")])):
            self.walk(item, f"{where}[]")

    def check(self, schema, where):
        kind = schema.get("type")
        bounded = {
            "string": bool(BOUNDED_TEXT & set(schema)),
            "array": "maxItems" in schema,
            "object": schema.get("additionalProperties") is False
            or ("maxProperties" in schema and schema["additionalProperties"] == {"$ref": OWN_JSON}),
            None: bool({"anyOf", "oneOf", "allOf", "enum", "const"} & set(schema)),
        }
        if not bounded.get(kind, True):
            self.unbounded.append(where)


def test_every_text_list_and_object_of_a_request_has_a_limit(client):
    document = client.document
    walk = Walk(document["components"]["schemas"])
    walk.seen.add("JsonValue")
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            for parameter in operation["parameters"]:
                described = parameter
                if "$ref" in parameter:
                    described = document["components"]["parameters"][parameter["$ref"].rpartition("/")[2]]
                walk.walk(described["schema"], f"{method} {path} {described['name']}")
            for content in operation.get("requestBody", {}).get("content", {}).values():
                walk.walk(content["schema"], f"{method} {path}")
    assert len(walk.seen) > 15
    assert walk.unbounded == []


def test_schema_walk_reports_fields_without_a_limit():
    walk = Walk({"Inner": {"type": "object", "properties": {"a": {"type": "string"}}}})
    walk.walk(
        {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "text": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "list": {"type": "array", "items": {"type": "string", "maxLength": 3}},
                "any": {},
                "inner": {"$ref": "#/components/schemas/Inner"},
                "fine": {"type": "array", "maxItems": 2, "items": {"type": "integer"}},
            },
        },
        "Body",
    )
    assert sorted(walk.unbounded) == ["Body.any", "Body.list", "Body.text", "Inner", "Inner.a"]


EVENTS = ["UserPromptSubmit", "PreToolUse", "SessionStart", "Stop"]
LIMITED = ["session_id", "agent_id", "cwd", "tool_name", "source", "hook_event_name", "transcript_path"]


# Each field in the event that is noted, and two of them in every other event.
@pytest.mark.parametrize(
    ("field", "event"),
    [*((field, "PostToolUse") for field in LIMITED), *product(("session_id", "cwd"), EVENTS)],
)
def test_too_long_a_name_in_a_hook_is_dropped_alone_and_noted(client, container, field, event):
    most = MAX_FOLDER_CHARS if field in ("cwd", "transcript_path") else MAX_SESSION_ID_CHARS
    sent = {
        "hook_event_name": event,
        "session_id": "s1",
        "cwd": "/",
        "tool_name": "Edit",
        "tool_input": {"file_path": "a.py"},
        "prompt": "What listens on port 5433?",
        field: "a" * (most + 1),
    }
    for _ in range(2):
        answer = client.post("/hooks/claude-code", sent)
        assert (answer.status_code, answer.get_data()) == (200, b"")
    [note] = client.get("/v1/errors").get_json()["items"]
    assert f"{field} could not be read" in note["message"]
    assert "aaaa" not in note["message"]
    container.feedback.flush()
    is_noted = event == "PostToolUse" and field not in ("session_id", "tool_name", "hook_event_name")
    assert container.settings.paths.workspace("default").events.exists() == is_noted


def test_two_sessions_whose_names_begin_alike_stay_two(client):
    long = "s" * MAX_SESSION_ID_CHARS
    client.post("/v1/incognito", {"session_id": long})
    tool = {"hook_event_name": "PostToolUse", "cwd": "/", "tool_name": "Edit", "tool_input": {"file_path": "a.py"}}
    client.post("/hooks/claude-code", {**tool, "session_id": f"{long}t"})
    assert [one["session_id"] for one in client.get("/v1/incognito").get_json()["items"]] == [long]


LARGE = {"text": "key=" + "a" * MAX_METADATA_BYTES}
DEEP = '{"a":' * 5000 + "1" + "}" * 5000


def own_json(loc):
    """Requests whose JSON of the caller's own is larger than it may be."""
    big = {"details" if loc == "details" else "metadata": LARGE if loc == "metadata" else {"reason": "a" * 70_000}}
    return [
        ("POST", "/v1/memories", {"content": "A decision", "kind": "decision", **big}),
        ("POST", "/v1/memories/batch", {"items": [{"content": "A decision", "kind": "decision", **big}]}),
        (
            "PUT",
            "/v1/sources/notes/items",
            {"items": [{"key": "k", "digest": "0" * 64, "memories": [{"content": "A", "kind": "decision", **big}]}]},
        ),
    ]


@pytest.mark.parametrize("loc", ["metadata", "details"])
def test_oversized_json_is_rejected_before_secret_detection(client, monkeypatch, loc):
    written = client.write("A decision", kind="decision")
    redact_json = fields.redact_json

    def look(value):
        assert len(json.dumps(value)) < 1000, "looked through"
        return redact_json(value)

    monkeypatch.setattr(fields, "redact_json", look)
    for method, path, body in own_json(loc):
        answer = client.call(method, path, json=body)
        assert answer.status_code == 422, answer.get_data(as_text=True)
        assert loc in answer.get_json()["errors"][0]["loc"]
    assert client.patch(f"/v1/memories/{written}", {loc: own_json(loc)[0][2][loc]}).status_code == 422


def test_long_path_or_field_name_is_rejected(client):
    long = "a" * (MAX_PATH_PART_CHARS + 1)
    assert client.get(f"/v1/memories/{long}").status_code == 400
    assert client.get(f"/v1/facts/{long}/port").status_code == 400
    assert client.put(f"/v1/sources/{long}/items", {"items": []}).status_code == 400
    assert client.delete(f"/v1/memories/{long}").status_code == 400


def test_deep_or_wide_body_is_rejected(client):
    headers = {**client.auth, "Content-Type": "application/json"}
    for path in ("/v1/memories", "/v1/recall", "/hooks/claude-code"):
        answer = client.call("POST", path, data=DEEP, headers=headers)
        assert answer.status_code == (200 if path.startswith("/hooks") else 400)
        wide = '{"metadata": {' + ",".join(f'"{n}": {n}' for n in range(200_000)) + '}, "content": "A"}'
        answer = client.call("POST", path, data=wide, headers=headers)
        assert answer.status_code == (200 if path.startswith("/hooks") else 422)
