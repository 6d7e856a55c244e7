"""Only RFC 3339 times and dates are accepted, in every field that takes a time."""

import pytest

from web.http.app import APIS
from web.http.openapi import document

DOCUMENT = document(endpoint for api in APIS for endpoint in api.endpoints)

# Field report: numbers as text were read as seconds since 1970.
NO_TIMES = [
    "2030",
    "1767225600",
    "1767225600000",
    "1e9",
    "-1",
    "0",
    "",
    " 2026-01-31",
    "2026-01-31\n",
    "2026",
    "2026-01",
    "2026-1-3",
    "20260131",
    "2026-W05",
    "2026-W05-6",
    "2026-031",
    "2026-13-01",
    "2026-02-30",
    "0000-01-01",
    "+002026-01-31",
    "2026-01-31T12:00:00",
    "2026-01-31T12Z",
    "2026-01-31T12:00Z",
    "2026-01-31 12:00:00Z",
    "2026-01-31T24:00:01Z",
    "2026-01-31T12:60:00Z",
    "2026-01-31T12:00:61Z",
    "2026-01-31T12:00:00+2",
    "2026-01-31T12:00:00+0200",
    "2026-01-31T12:00:00+24:00",
    "2026-01-31T12:00:00,5Z",
    "2026-01-31T12:00:00[Europe/Berlin]",
    "２０２６-01-31",
    "tomorrow",
    "P1D",
    "now",
    2030,
    1767225600.0,
    True,
    ["2026-01-31"],
    {},
]
TIMES = {
    "2030-01-01": "2030-01-01T00:00:00.000Z",
    "2030-01-01T12:00:00Z": "2030-01-01T12:00:00.000Z",
    "2030-01-01t12:00:00.25z": "2030-01-01T12:00:00.250Z",
    "2030-01-01T12:00:00.123456789+02:00": "2030-01-01T10:00:00.123Z",
    "2030-01-01T00:00:00-00:00": "2030-01-01T00:00:00.000Z",
    "2016-12-31T23:59:60Z": "2017-01-01T00:00:00.000Z",
}


def resolve(schema):
    while "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def list_time_fields(schema, path=()):
    schema = resolve(schema)
    if schema.get("format") == "date-time":
        yield path
    for inner in schema.get("anyOf", ()):
        yield from list_time_fields(inner, path)
    for name, inner in schema.get("properties", {}).items():
        yield from list_time_fields(inner, (*path, name))
    if "items" in schema:
        yield from list_time_fields(schema["items"], (*path, 0))


def nest(path, value):
    for part in reversed(path):
        value = [value] if part == 0 else {part: value}
    return value


IN_BODIES = [
    (method.upper(), path, field)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
    if "requestBody" in operation
    for field in list_time_fields(operation["requestBody"]["content"]["application/json"]["schema"])
]
IN_QUERIES = [
    (method.upper(), path, parameter["name"])
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
    for parameter in operation["parameters"]
    if any(True for _ in list_time_fields(parameter.get("schema", {})))
]


def list_named(response):
    return [error["loc"] for error in response.get_json()["errors"]]


def test_every_kind_of_time_is_found_in_the_document():
    names = {field[-1] for *_, field in IN_BODIES} | {name for *_, name in IN_QUERIES}
    assert names == {
        "at",
        "as_of",
        "commit_at",
        "due_at",
        "expires_at",
        "occurred_at",
        "since",
        "until",
        "valid_from",
        "valid_to",
    }


@pytest.mark.parametrize(("method", "path", "field"), IN_BODIES, ids=str)
def test_a_body_takes_only_times_of_rfc_3339(shared, method, path, field):
    for value in NO_TIMES:
        answer = shared.call(method, path, json=nest(field, value))
        assert answer.status_code == 422, value
        assert ".".join(map(str, field)) in list_named(answer), value
    for value in TIMES:
        answer = shared.call(method, path, json=nest(field, value))
        assert answer.status_code != 422 or ".".join(map(str, field)) not in list_named(answer), value


@pytest.mark.parametrize(("method", "path", "name"), IN_QUERIES, ids=str)
def test_a_query_string_takes_only_times_of_rfc_3339(shared, method, path, name):
    for value in NO_TIMES:
        answer = shared.call(method, path, query_string={name: str(value)})
        assert answer.status_code == 422, value
        assert name in list_named(answer), value
    # A plus sign that the client did not encode is a space.
    assert name in list_named(shared.call(method, f"{path}?{name}=2026-01-31T12:00:00+02:00"))
    for value in TIMES:
        answer = shared.call(method, path, query_string={name: value})
        assert answer.status_code != 422 or name not in list_named(answer), value


@pytest.mark.parametrize(
    ("kind", "field"), [("goal", "due_at"), ("episode", "started_at"), ("episode", "ended_at")], ids=str
)
def test_times_among_the_details_of_a_kind_are_read_in_the_same_way(client, kind, field):
    memory = client.write("A text", kind=kind)
    # The texts of details lose white space at their ends first.
    for value in (value for value in NO_TIMES if not isinstance(value, str) or value == value.strip()):
        for answer in (
            client.post("/v1/memories", {"content": "A text", "kind": kind, "details": {field: value}}),
            client.patch(f"/v1/memories/{memory}", {"details": {field: value}}),
        ):
            assert (answer.status_code, list_named(answer)) == (422, [f"details.{field}"]), value
    for value, stored in TIMES.items():
        assert (
            client.patch(f"/v1/memories/{memory}", {"details": {field: value}}).get_json()["details"][field] == stored
        )


@pytest.mark.parametrize(("value", "stored"), TIMES.items())
def test_a_time_is_stored_in_utc(client, value, stored):
    memory_id = client.write("A text", occurred_at=value)
    memory = client.patch(f"/v1/memories/{memory_id}", {"expires_at": value}).get_json()
    assert (memory["occurred_at"], memory["expires_at"]) == (stored, stored)


@pytest.mark.parametrize("value", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:60Z", "9999-12-31T23:59:59-01:00"])
def test_a_time_whose_year_utc_does_not_have_is_refused(shared, value):
    answer = shared.post("/v1/memories", {"content": "A text", "occurred_at": value})
    assert (answer.status_code, list_named(answer)) == (422, ["occurred_at"])
    assert "years 1 to 9999" in answer.get_json()["errors"][0]["msg"]


MCP_ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.mark.parametrize("value", ["2030", "2026-13-01", "tomorrow", "2026-01-31T12:00:00", "2026-W05"])
@pytest.mark.parametrize(
    ("tool", "arguments", "field"),
    [
        ("recall", {"query": "ports"}, "since"),
        ("remember_batch", {"items": [{"content": "A text"}]}, "occurred_at"),
        ("set_fact", {"subject": "a", "attribute": "b", "value": "c"}, "valid_from"),
        ("fact_as_of", {"subject": "a", "attribute": "b"}, "as_of"),
        ("goals", {"title": "Ship it"}, "due_at"),
    ],
)
def test_a_tool_takes_only_times_of_rfc_3339(shared, tool, arguments, field, value):
    given = (
        {**arguments, "items": [{"content": "A text", field: value}]}
        if "items" in arguments
        else arguments | {field: value}
    )
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": given}}
    answer = shared.post("/mcp", call, headers=MCP_ACCEPT).get_json()
    assert answer["result"]["isError"]
    assert field in answer["result"]["content"][0]["text"]
