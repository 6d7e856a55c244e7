"""Nothing crosses a scope: random viewers ask random workspaces in every way that there is.

A memory leaks when its word or the end of its id stands anywhere in an answer to somebody whom it does not reach.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from pipeline.kernel.records import EdgeKind
from pipeline.kernel.store import edges, memories
from pipeline.recall.explain import NOT_VISIBLE
from tests.fakes.in_process import digest_all
from tests.fakes.scopes import (
    AT,
    CHECKS,
    OWNED,
    Check,
    Plan,
    Scope,
    ScopedMemory,
    ScopesServer,
    Workspace,
    at_home_in,
    body_of,
    plans,
    reaches,
    text_of,
)

EXAMPLES = 30
# On a busy machine too, every channel of a search answers.
PATIENT = {"budget_ms": 10_000}


@dataclass(frozen=True)
class Seen:
    """What an operation answered: whose traces may stand in it, and which ids it lists and should list, if any."""

    text: str
    allowed: set[str]
    found: set[str] | None = None
    expected: set[str] | None = None


Operation = Callable[[Workspace, Check], Seen]


def read_answer(response: Any) -> Any:
    assert response.status_code == 200, response.get_data(as_text=True)
    return response.get_json()


def ids(items: list[dict[str, Any]]) -> set[str]:
    return {item["id"] for item in items}


def recall(space: Workspace, check: Check) -> Seen:
    """All that may be found, or with a small k some of it; with kinds, of one session, of one scope, explained."""
    body: dict[str, Any] = {"query": f"{check.topic} service port", "k": check.k, "viewer": check.viewer} | PATIENT
    viewer, found = check.viewer, space.memories
    if check.narrow == "kinds":
        body["kinds"] = [check.kind, "fact"]
        found = [memory for memory in found if memory.kind in (check.kind, "fact")]
    if check.narrow == "session" and check.session is not None:
        body["session_id"] = check.session
        viewer = {"session": check.session} | viewer
        found = [memory for memory in found if memory.session == check.session]
    if check.narrow == "scope":
        body["scope"] = body_of(check.scope)
        viewer = at_home_in(check.scope)
        found = [memory for memory in found if memory.scope == check.scope]
    if check.narrow == "nothing asked":
        body["query"] = ""
    expected = {memory.id for memory in found if reaches(memory.scope, viewer)}
    response = space.call("POST", "/v1/recall", json=body | {"explain": check.flag})
    results = ids(read_answer(response)["results"])
    text, allowed = response.get_data(as_text=True), space.visible(viewer)
    if check.k < 100:
        assert len(results) == min(check.k, len(expected))
        return Seen(text, allowed, results, results & expected)
    return Seen(text, allowed, results, expected)


def recall_sessions(space: Workspace, check: Check) -> Seen:
    body = {"query": "service port", "group": "session", "k": check.k, "viewer": check.viewer, "explain": check.flag}
    response = space.call("POST", "/v1/recall", json=body | PATIENT)
    results = ids([hit for group in read_answer(response)["results"] for hit in group["best"]])
    allowed = space.visible(check.viewer)
    return Seen(response.get_data(as_text=True), allowed, results, results & allowed)


def why(space: Workspace, check: Check) -> Seen:
    """What is asked by its id is told of; what lifted it, or would have, is not."""
    asked = space.at(check.one).id
    body = {"query": "service port", "id": asked, "viewer": check.viewer}
    response = space.call("POST", "/v1/recall/why", json=body)
    answer = read_answer(response)
    visible = asked in space.visible(check.viewer)
    assert (answer["rank"] is not None) == visible
    assert visible or answer["reasons"] == [NOT_VISIBLE]
    return Seen(response.get_data(as_text=True), space.visible(check.viewer) | {asked})


def list_memories(space: Workspace, check: Check) -> Seen:
    query: dict[str, Any] = {"limit": 200}
    viewer, found = {}, space.memories
    if check.narrow == "session" and check.session is not None:
        query["session_id"] = viewer["session"] = check.session
        found = [memory for memory in found if memory.session == check.session]
    if check.narrow == "scope":
        query["scope"] = text_of(check.scope)
        viewer = at_home_in(check.scope)
        found = [memory for memory in found if memory.scope == check.scope]
    response = space.call("GET", "/v1/memories", query_string=query)
    expected = {memory.id for memory in found if reaches(memory.scope, viewer)}
    return Seen(response.get_data(as_text=True), expected, ids(read_answer(response)["items"]), expected)


def list_goals(space: Workspace, check: Check) -> Seen:
    response = space.call("GET", "/v1/goals", query_string={"limit": 200, **check.viewer})
    expected = space.of_kind("goal", space.visible(check.viewer))
    return Seen(response.get_data(as_text=True), expected, ids(read_answer(response)["items"]), expected)


def list_lessons(space: Workspace, check: Check) -> Seen:
    about = {"q": f"Which port does the {check.topic} service listen on?"} if check.flag else {}
    response = space.call("GET", "/v1/lessons", query_string={"limit": 200, **about, **check.viewer})
    found, expected = ids(read_answer(response)["items"]), space.of_kind("lesson", space.visible(check.viewer))
    # What is not relevant enough to a text is left out.
    return Seen(response.get_data(as_text=True), expected, found, found & expected if about else expected)


def prepare(space: Workspace, check: Check) -> Seen:
    body: dict[str, Any] = {"message": f"Which port does the {check.topic} service listen on?"}
    if check.session is not None:
        body["session_id"] = check.session
    viewer = at_home_in(("session", check.session))
    if check.flag:
        body["viewer"] = check.viewer
        viewer |= check.viewer
    response = space.call("POST", "/v1/prepare", json=body)
    answer, allowed = read_answer(response), space.visible(viewer)
    parts = ("lessons", "decisions", "facts", "open_goals", "recent_activity", "memories")
    found = {memory_id for part in parts for memory_id in ids(answer[part])}
    assert not answer["relevant"] or found
    return Seen(response.get_data(as_text=True), allowed, found, found & allowed)


def hook(space: Workspace, check: Check) -> Seen:
    event = {
        "hook_event_name": "UserPromptSubmit",
        "session_id": check.session or "",
        "prompt": f"Which port does the {check.topic} service listen on?",
    }
    response = space.call("POST", "/hooks/claude-code", json=event)
    assert response.status_code == 200
    viewer = at_home_in(("session", check.session))
    return Seen(response.get_data(as_text=True), space.visible(viewer))


def one_fact(space: Workspace, check: Check) -> Seen:
    """The same key has a value in several scopes; each answers for itself alone."""
    path = f"/v1/facts/billing service/port{'/history' if check.flag else ''}"
    response = space.call("GET", path, query_string={"scope": text_of(check.scope)})
    expected = {memory.id for memory in space.memories if memory.kind == "keyed_fact" and memory.scope == check.scope}
    assert response.status_code == (200 if expected else 404)
    text = response.get_data(as_text=True)
    return Seen(text, expected, space.named_in(text), expected)


def list_facts(space: Workspace, check: Check) -> Seen:
    response = space.call("GET", "/v1/facts", query_string={"limit": 200, "scope": text_of(check.scope)})
    expected = {memory.id for memory in space.memories if memory.kind == "keyed_fact" and memory.scope == check.scope}
    return Seen(response.get_data(as_text=True), expected, ids(read_answer(response)["items"]), expected)


def read_one(space: Workspace, check: Check) -> Seen:
    """A memory is read by its id; its edges and neighbours show what may be seen from its own scope."""
    memory = space.at(check.one)
    response = space.call("GET", f"/v1/memories/{memory.id}")
    allowed = space.visible(at_home_in(memory.scope)) | {memory.id}
    found = ids(read_answer(response)["edges"])
    return Seen(response.get_data(as_text=True), allowed, found, found & allowed)


def draw_edge(space: Workspace, check: Check) -> Seen:
    one, other = space.at(check.one), space.at(check.other)
    response = space.call("POST", f"/v1/memories/{one.id}/edges", json={"kind": "supports", "to": other.id})
    allowed = space.visible(at_home_in(one.scope)) | {one.id}
    assert response.status_code == (201 if other != one and other.id in allowed else 422)
    return Seen(response.get_data(as_text=True), allowed)


def write_with_edge(space: Workspace, check: Check) -> Seen:
    word, other = f"zqe{next(space.server.numbers):06d}", space.at(check.other)
    body = {
        "content": f"Another service listens on its port {word}",
        "scope": body_of(check.scope),
        "edges": [{"kind": "cause", "to": other.id}],
    }
    response = space.call("POST", "/v1/memories", json=body)
    allowed = space.visible(at_home_in(check.scope))
    assert response.status_code == (201 if other.id in allowed else 422)
    if response.status_code == 201:
        space.memories.append(ScopedMemory(response.get_json()["id"], word, check.scope, None, "fact", "any"))
    return Seen(response.get_data(as_text=True), space.visible(at_home_in(check.scope)))


def list_pairs(space: Workspace, check: Check) -> Seen:
    response = space.call("GET", "/v1/duplicates", query_string={"limit": 200, **check.viewer})
    allowed = space.visible(check.viewer)
    found = {(pair["older"]["id"], pair["newer"]["id"]) for pair in read_answer(response)["items"]}
    assert found == {pair for pair in space.paired if allowed.issuperset(pair)}
    return Seen(response.get_data(as_text=True), allowed)


def list_admissions(space: Workspace, check: Check) -> Seen:
    response = space.call("GET", "/v1/admissions", query_string={"limit": 200, **check.viewer})
    allowed = space.visible(check.viewer)
    return Seen(response.get_data(as_text=True), allowed, ids(read_answer(response)["items"]), allowed)


OPERATIONS: dict[str, Operation] = {
    operation.__name__: operation
    for operation in (
        *(recall, recall_sessions, why, list_memories, list_goals, list_lessons, prepare, hook, one_fact, list_facts),
        *(read_one, draw_edge, write_with_edge, list_pairs, list_admissions),
    )
}
# Recall has the most ways to be asked.
WEIGHTED = (*OPERATIONS, *("recall",) * 2, "prepare")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = ScopesServer(tmp_path_factory.mktemp("scopes"))
    yield server
    server.close()


@pytest.mark.timeout(600)
def test_nothing_crosses_a_scope_for_any_viewer_or_request(server):
    asked, hidden, shown = Counter(), Counter(), Counter()

    # A failure names its check; to make its workspace smaller would take longer than a test may.
    @settings(max_examples=EXAMPLES, phases=(Phase.reuse, Phase.generate), suppress_health_check=list(HealthCheck))
    @given(plans(WEIGHTED))
    def verify(plan: Plan):
        space = server.open(plan)
        for check in plan.checks:
            seen = OPERATIONS[check.operation](space, check)
            leaked = space.named_in(seen.text) - seen.allowed
            assert not leaked, (check, [memory for memory in space.memories if memory.id in leaked])
            assert seen.found == seen.expected, check
            asked[check.operation] += 1
            hidden[check.operation] += len(space.memories) - len(seen.allowed)
            shown[check.operation] += len(space.named_in(seen.text))

    verify()
    assert asked.total() >= EXAMPLES * CHECKS
    # Each had something to hide and something to show, or it would have proved nothing. Chance decides how often.
    least = {name: min(asked[name], hidden[name], shown[name]) for name in OPERATIONS}
    assert all(count > EXAMPLES // 5 for count in least.values()), least


ALIKE = (
    "The billing service listens on port 8123",
    "The billing service listens on port 8123.",
    "the billing service listens on port 8123!",
    "The billing service does not listen on port 8123",
    "The billing service listens on port 9000",
)


def rows_of(server: ScopesServer, space: Workspace, statement: str) -> list[tuple[Any, ...]]:
    with server.container.databases.get(space.name).read() as db:
        return list(db.execute(statement).fetchall())


SCOPES = st.sampled_from([("workspace", None), ("user", None), *((kind, name) for kind in OWNED for name in "xy")])
TEXTS = st.lists(st.tuples(SCOPES, st.sampled_from(ALIKE)), min_size=8, max_size=14, unique=True)
# Pairs of memories of different scopes, by what binds them: nothing may.
BONDS = {
    "merged": "SELECT a.seq FROM memory a JOIN memory b ON b.seq = a.merged_into",
    "waiting": "SELECT a.seq FROM pair p JOIN memory a ON a.seq = p.older_seq JOIN memory b ON b.seq = p.newer_seq",
    "joined": "SELECT a.seq FROM edge e JOIN memory a ON a.seq = e.from_seq JOIN memory b ON b.seq = e.to_seq",
}
ACROSS = " WHERE a.scope_kind <> b.scope_kind OR a.scope_id <> b.scope_id"


def test_no_digestion_merges_pairs_or_joins_memories_of_two_scopes(server):
    bound = Counter()

    @settings(max_examples=15, suppress_health_check=list(HealthCheck))
    @given(TEXTS)
    def verify(memories: list[tuple[Scope, str]]):
        space = server.make()
        items = [{"content": text, "scope": body_of(scope)} for scope, text in memories]
        results = read_answer(space.call("POST", "/v1/memories/batch", json={"items": items}))["results"]
        assert {result["outcome"] for result in results} == {"created"}
        digest_all(server.worker, space.name)
        for bond, statement in BONDS.items():
            assert rows_of(server, space, statement + ACROSS) == [], bond
            bound[bond] += len(rows_of(server, space, statement))

    verify()
    assert bound["merged"] > 0
    assert bound["waiting"] + bound["joined"] > 0


def test_a_neighbour_in_the_session_is_shown_only_where_both_may_be_seen(client):
    first = client.write("The first of the session", session_id="s")
    hidden = client.write("The second, an agent's own", session_id="s", scope={"kind": "agent", "id": "s"})
    task = client.write("The third, a task's own", session_id="s", scope={"kind": "task", "id": "s"})

    def neighbours(memory_id: str) -> list[str]:
        return [edge["id"] for edge in client.get(f"/v1/memories/{memory_id}").get_json()["edges"]]

    assert neighbours(first) == []
    assert neighbours(hidden) == [first]
    assert neighbours(task) == [first]


def test_contradicting_memory_is_named_only_where_visible(client, container):
    fact = client.write("The port is 8123")
    own = client.write("The port is not 8123", scope={"kind": "agent", "id": "a"})
    with container.databases.get("default").write() as db:
        one, other = (memories.get(db, memory_id).seq for memory_id in (own, fact))
        edges.add(db, one, EdgeKind.CONTRADICTS, other, "test", AT)
    hits = {hit["id"]: hit for hit in client.recall("port", viewer={"agent": "a"})["results"]}
    assert hits[own]["contradicted_by"] == [fact]
    assert "contradicted_by" not in hits[fact]


@pytest.mark.parametrize("scope", [{"kind": "workspace"}, {"kind": "agent", "id": "b"}, {"kind": "task", "id": "a"}])
def test_repeating_an_agents_private_line_outside_its_scope_is_rejected(client, scope):
    own = client.write("The port of billing is 8123", scope={"kind": "agent", "id": "a"})
    line = f"- [{own[-8:]} · fact · 2026-01-01] The port of billing is 8123"
    repeated = client.post("/v1/memories", {"content": line, "scope": scope}).get_json()
    assert repeated["outcome"] == "rejected"
    assert own not in repeated.values()
    assert client.find_ids("port") == []
    at_home = client.post("/v1/memories", {"content": line, "scope": {"kind": "agent", "id": "a"}}).get_json()
    assert (at_home["id"], at_home["outcome"]) == (own, "merged")


def test_the_same_text_in_two_scopes_is_two_memories(client):
    ids = {client.write("The port is 8123", scope={"kind": kind, "id": "x"}) for kind in OWNED}
    ids.add(client.write("The port is 8123"))
    assert len(ids) == len(OWNED) + 1


def test_candidates_are_listed_only_to_their_owner(client, container):
    own = client.write("Billing may listen on port 8123", scope={"kind": "agent", "id": "a"})
    with container.databases.get("default").write() as db:
        memories.update(db, memories.get(db, own).seq, {"candidate": 1}, AT)

    def list_waiting(**viewer: str) -> list[str]:
        return [item["id"] for item in client.get("/v1/candidates", query_string=viewer).get_json()["items"]]

    assert list_waiting() == list_waiting(agent="b") == list_waiting(task="a") == []
    assert list_waiting(agent="a") == [own]
