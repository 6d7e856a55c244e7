"""No secret reaches the disk: one is put into every text that any route takes, and every column and byte is read."""

import re
import sqlite3
from urllib.parse import quote

import pytest

from pipeline.kernel.records import Kind
from pipeline.write.fields import find_details
from web.hooks.claude_code import HANDLERS

SECRET = "ghp_" + "9fK2mQ7xLrT4vBn8" + "WcYz3Hd6Jp1SgAeUo5Xi"
SAID = f"The gazump takes {SECRET} as its token."


def fill(schema, document):  # noqa: PLR0911 - a return for each form of a schema
    """Return a value for a schema with the secret in every text that is free."""
    if "$ref" in schema:
        return fill(document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]], document)
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return fill(next(one for one in schema[choice] if one.get("type") != "null"), document)
    if "enum" in schema or "const" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    kind = schema.get("type")
    if kind == "object" or "properties" in schema:
        values = {
            # Which fields the details have follows from the kind: they have a test of their own.
            name: {} if name == "details" else fill(inner, document)
            for name, inner in schema.get("properties", {}).items()
        }
        return values or {SECRET: SAID, "list": [SAID, {"within": SAID}]}
    if kind == "array":
        if "prefixItems" in schema:
            return [fill(inner, document) for inner in schema["prefixItems"]]
        return [fill(schema.get("items", {"type": "string"}), document)]
    if kind == "string":
        return "2026-01-31T12:00:00Z" if schema.get("format") == "date-time" else SAID
    return {"integer": 1, "number": 0.5, "boolean": True, None: SAID}.get(kind)


def give_way(body, loc, known):
    """Put what is known to be taken in the place of what an error names; without any, take it away."""
    *path, last = [int(part) if part.isdigit() else part for part in loc.split(".")]
    inner = body
    for part in path:
        if not isinstance(inner, dict | list) or (isinstance(inner, dict) and part not in inner):
            return
        inner = inner[part]
    if isinstance(inner, dict):
        refused = inner.pop(last, None)
        if last in known and refused != known[last]:
            inner[last] = known[last]
    elif isinstance(inner, list) and isinstance(last, int) and last < len(inner):
        inner.pop(last)


def send_filled(client, method, path, body, known):
    """Send a body, with what is known in the place of what is refused, until it is taken; return the last answer."""
    for _ in range(12):
        answer = client.call(method, path, json=body)
        errors = answer.get_json()["errors"] if answer.status_code == 422 else []
        for error in errors:
            give_way(body, error["loc"], known)
        if not errors:
            break
    return answer


def columns_with(home, text):
    """List (file, table, column) of every value in every database of a home that holds a text."""
    found = []
    for file in sorted(home.rglob("*.sqlite")):
        db = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
        for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for _, column, *_ in db.execute(f"PRAGMA table_info({table})").fetchall():
                query = f"SELECT count(*) FROM {table} WHERE instr(CAST({column} AS TEXT), ?) > 0"
                if db.execute(query, (text,)).fetchone()[0]:
                    found.append((file.name, table, column))
        db.close()
    return found


@pytest.fixture
def lesson(client):
    return client.write("Never restart the gazump at night.", kind="lesson")


@pytest.fixture
def assert_nowhere(container, digested):
    """Close the house and look through every column, byte and name of its home."""

    def look():
        container.feedback.submit(lambda: None).result(timeout=20)
        digested()
        container.close()
        home = container.settings.home
        assert columns_with(home, SECRET) == []
        assert [file.name for file in home.rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()] == []
        assert [file.name for file in home.rglob("*") if SECRET in file.name] == []

    return look


def test_no_text_of_any_route_brings_a_secret_to_the_disk(client, container, digested, lesson, assert_nowhere):
    digested()
    told = client.post("/v1/prepare", {"message": "restart the gazump"}).get_json()
    known = {"digest": "d1", "key": "notes.md", "to": client.write("The gazump is green."), "id": lesson}
    parts = {"surface_id": told["lessons"][0]["surface_id"], "memory_id": lesson, "source": "s1"}
    taken = set()
    for path, operations in client.document["paths"].items():
        for method in ("POST", "PUT", "PATCH"):
            content = operations.get(method.lower(), {}).get("requestBody", {}).get("content", {})
            names = re.findall(r"\{(\w+)\}", path)
            if "application/json" in content and parts.keys() | {"subject", "attribute"} >= set(names):
                place = re.sub(r"\{(\w+)\}", lambda name: quote(parts.get(name[1], SAID), safe=""), path)
                body = fill(content["application/json"]["schema"], client.document)
                answer = send_filled(client, method, place, body, known)
                assert SECRET not in answer.get_data(as_text=True), (method, path)
                if answer.status_code < 300:
                    taken.add((method, path))
    assert len(taken) >= 12, taken
    assert_nowhere()


def test_no_field_of_any_kind_brings_a_secret_to_the_disk(client, assert_nowhere):
    for kind in Kind:
        schema = find_details(kind).model_json_schema()
        details = fill(schema, {"components": {"schemas": schema.get("$defs", {})}}) if schema.get("properties") else {}
        body = {"content": f"{kind} {SAID}", "kind": kind, "details": details, "session_id": SAID, "branch": SAID}
        assert client.post("/v1/memories", body).status_code == 201, kind
    assert_nowhere()


def test_no_field_of_any_hook_brings_a_secret_to_the_disk(client, assert_nowhere, lesson):
    for event in (*HANDLERS, SECRET):
        send_event(client, event)
    assert_nowhere()


def send_event(client, event):
    """Send an event, and again with one field changed."""
    given = {
        "hook_event_name": event,
        "session_id": f"session of {event} {SECRET}",
        "cwd": f"/home/{SECRET}/project",
        "prompt": f"restart the gazump {SAID}",
        "source": SAID,
        "tool_name": "Bash",
        "tool_input": {"command": f"git commit -m '{SAID}'", "description": SAID},
        "tool_response": {"stdout": SAID},
    }
    for changed in (
        {},
        {"agent_id": f"agent {SECRET}"},
        {"tool_name": "Edit", "tool_input": {"file_path": f"/{SECRET}/x.py"}},
        {"tool_name": SECRET},
        {"tool_input": SAID},
        {"cwd": f"/tmp/\0{SECRET}"},
    ):
        answer = client.post("/hooks/claude-code", given | changed)
        assert answer.status_code == 200, event
        assert SECRET not in answer.get_data(as_text=True), event
