"""Whatever is sent, the answer is one that the contract knows; never a 500."""

import json

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from pipeline.kernel.records import Kind, ScopeKind, Source, Stage
from tests.fakes.client import CheckedClient
from web.http.app import APIS, create_app

# Answers errors in the words of a protocol of its own; test_mcp_http.py sends it as much.
OF_ANOTHER_PROTOCOL = "/mcp"
WITH_BODY = [
    (e.method, e.path)
    for api in APIS
    for e in api.endpoints
    if e.method in ("POST", "PATCH", "PUT") and e.path != OF_ANOTHER_PROTOCOL
]
EXPECTED = {200, 201, 202, 400, 404, 409, 413, 422, 503}

texts = st.text(max_size=40) | st.sampled_from(
    ["\x00", "\u200b", "../..", "' OR 1=1 --", '"', "NEAR(", "𝔘𝔫𝔦", "a\u0301"]
)
numbers = st.integers() | st.floats() | st.sampled_from([2**63, -(2**64), 10**400, 1e308])
anything = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
moments = st.datetimes(timezones=st.timezones()).map(lambda m: m.isoformat()) | texts
scopes = st.fixed_dictionaries({"kind": st.sampled_from(list(ScopeKind)) | texts}, optional={"id": texts | anything})
fields = {
    "content": texts | anything,
    "kind": st.sampled_from(list(Kind)) | anything,
    "importance": st.floats(0, 1) | anything,
    "scope": scopes | anything,
    "tags": st.lists(st.from_regex(r"[a-z0-9-]{1,5}", fullmatch=True), max_size=3) | anything,
    "metadata": st.dictionaries(texts, anything, max_size=3) | anything,
    "session_id": texts | anything,
    "source": st.sampled_from(list(Source)) | anything,
    "occurred_at": moments | anything,
    "pinned": st.booleans() | anything,
    "query": texts | anything,
    "k": st.integers(1, 100) | anything,
    "kinds": st.lists(st.sampled_from(list(Kind)), max_size=3) | anything,
    "since": moments | anything,
    "until": moments | anything,
    "group": st.sampled_from(["memory", "session"]) | anything,
    "budget_ms": st.just(2000) | st.integers(-1, 0) | texts,
    "explain": st.booleans() | anything,
    "stage": st.sampled_from(list(Stage)) | anything,
    "hook_event_name": st.just("UserPromptSubmit") | anything,
    "prompt": texts | anything,
    "cwd": texts | anything,
}
# Most random objects fail on their first unknown field; these know their route's fields.
KNOWN = {
    "/v1/memories": "content kind importance scope tags metadata session_id source occurred_at",
    "/v1/memories/{memory_id}": "pinned importance tags metadata content",
    "/v1/recall": "query k kinds scope session_id since until group budget_ms explain",
    "/v1/queue/retry": "stage",
    "/hooks/claude-code": "hook_event_name session_id prompt cwd",
}
EXAMPLES = 60
# A body for another route is mostly refused as a whole: a few of them are enough.
FEW_EXAMPLES = 12
NEEDED = {"/v1/memories": "content", "/v1/recall": "query", "/hooks/claude-code": "hook_event_name"}
# These contain memories or items.
NESTED = {"/v1/memories/batch", "/v1/sources/{source}/items", "/v1/sources/{source}/forget"}


def bodies(path):
    names = KNOWN.get(path, "").split()
    needed = {name: fields[name] for name in names if name == NEEDED.get(path)}
    optional = {name: fields[name] for name in names if name not in needed}
    objects = st.fixed_dictionaries(needed, optional=optional)
    if path == "/v1/memories/batch":
        objects = st.fixed_dictionaries({"items": st.lists(bodies("/v1/memories") | anything, max_size=3)})
    if path == "/v1/sources/{source}/items":
        item = {"key": texts | anything, "digest": st.sampled_from(["1", "2"]) | anything}
        given = {"memories": st.lists(bodies("/v1/memories"), max_size=3) | anything}
        objects = st.fixed_dictionaries({"items": st.lists(st.fixed_dictionaries(item, optional=given), max_size=3)})
    if path == "/v1/sources/{source}/forget":
        objects = st.fixed_dictionaries({"keys": st.lists(texts | anything, max_size=3)})
    return objects | anything


@pytest.fixture(scope="module")
def server(module_container):
    client = CheckedClient(create_app(module_container), module_container.token)
    return client, client.write("A memory to change")


@pytest.mark.parametrize(("method", "path"), WITH_BODY)
def test_no_json_body_breaks_a_route(server, method, path):
    client, memory_id = server
    named = path.replace("{memory_id}", memory_id).replace("{source}", "fuzz")
    examples = EXAMPLES if path in KNOWN or path in NESTED else FEW_EXAMPLES

    @settings(max_examples=examples, suppress_health_check=[HealthCheck.too_slow])
    @given(bodies(path))
    def answers(body):
        data = json.dumps(body).encode("utf-8", "surrogatepass")
        assert client.call(method, named, data=data).status_code in EXPECTED

    answers()


@settings(max_examples=20)
@given(body=st.binary(max_size=60))
def test_no_bytes_break_a_route(server, body):
    client, memory_id = server
    for method, path in WITH_BODY:
        assert client.call(method, path.replace("{memory_id}", memory_id), data=body).status_code in EXPECTED


@settings(max_examples=EXAMPLES)
@given(name=st.sampled_from(["limit", "cursor", "kind", "scope", "session_id", "archived", "hard"]), value=texts)
def test_no_query_string_breaks_a_route(server, name, value):
    client, _ = server
    for method, path in (("GET", "/v1/memories"), ("GET", "/v1/errors"), ("DELETE", "/v1/memories/nothing")):
        assert client.call(method, path, query_string={name: value}).status_code in EXPECTED


@settings(max_examples=EXAMPLES)
@given(text=st.text(min_size=1, max_size=60))
def test_accepted_text_can_be_read_and_recalled(server, text):
    client, _ = server
    response = client.post("/v1/memories", {"content": text, "session_id": "fuzz"})
    assert response.status_code in (201, 422)
    if response.status_code == 201:
        memory = client.get(f"/v1/memories/{response.get_json()['id']}").get_json()
        assert memory["content"]
        client.recall(memory["content"], k=100)


def test_a_nested_body_of_any_depth_is_answered(server):
    client, _ = server
    for depth in (50, 150, 5_000, 100_000):
        body = b'{"content": "x", "metadata": {"a": ' + b"[" * depth + b"]" * depth + b"}}"
        assert client.post("/v1/memories", data=body).status_code in (201, 400, 422)
