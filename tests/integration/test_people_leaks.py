"""Nothing of a person's own reaches another, whoever asks and however, before it is shared and after it is withdrawn.

A memory leaks when its word or the end of its id stands anywhere in an answer to somebody who may not see it.
"""

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.fakes.crowd import WORKSPACES, Crowd, CrowdPlan, CrowdServer, Look, crowd_plans

EXAMPLES = 25
QUESTION = "Which port does the billing service listen on?"

# Returns what somebody is answered who may enter the workspace.
Way = Callable[[Crowd, Look], str]


def viewer_of(look: Look) -> dict[str, str]:
    return {"agent": look.agent, "session": look.session, "task": look.task}


def ask(crowd: Crowd, look: Look, method: str, path: str, **rest) -> str:
    response = crowd.call(look.asker, look.workspace, method, path, **rest)
    assert response.status_code < 500, response.get_data(as_text=True)
    return response.get_data(as_text=True)


def get(path: str, **query: str) -> Way:
    return lambda crowd, look: ask(crowd, look, "GET", path, query_string=query)


def get_as_viewer(path: str, **query: str) -> Way:
    return lambda crowd, look: ask(crowd, look, "GET", path, query_string={**viewer_of(look), **query})


def recall(crowd: Crowd, look: Look) -> str:
    return ask(crowd, look, "POST", "/v1/recall", json={"query": QUESTION, "k": 100, "viewer": viewer_of(look)})


def list_all(crowd: Crowd, look: Look) -> str:
    return ask(crowd, look, "POST", "/v1/recall", json={"query": "", "k": 100, "viewer": viewer_of(look)})


def prepare(crowd: Crowd, look: Look) -> str:
    return ask(crowd, look, "POST", "/v1/prepare", json={"message": QUESTION, "viewer": viewer_of(look)})


def prompt(crowd: Crowd, look: Look) -> str:
    event = {"hook_event_name": "UserPromptSubmit", "prompt": QUESTION, "session_id": look.session}
    return ask(crowd, look, "POST", "/hooks/claude-code", json={**event, "agent_id": look.agent})


def session_start(crowd: Crowd, look: Look) -> str:
    event = {"hook_event_name": "SessionStart", "source": "startup", "session_id": look.session}
    return ask(crowd, look, "POST", "/hooks/claude-code", json={**event, "agent_id": look.agent})


def list_of_session(crowd: Crowd, look: Look) -> str:
    return ask(crowd, look, "GET", "/v1/memories", query_string={"session_id": look.session, "limit": 200})


def list_of_scope(kind: str) -> Way:
    def list_scope(crowd: Crowd, look: Look) -> str:
        scope = f"{kind}:{getattr(look, kind)}"
        return ask(crowd, look, "GET", "/v1/memories", query_string={"scope": scope, "limit": 200})

    return list_scope


def read_one(form: str) -> Way:
    def read(crowd: Crowd, look: Look) -> str:
        memory = crowd.at(look.one)
        workspace = crowd.names[look.workspace]
        path = form.format(id=memory.id, end=memory.id[-8:], workspace=workspace)
        text = ask(crowd, look, "GET", path)
        return text if memory.is_open_to(look.asker, look.workspace) else text.replace(memory.id, "")

    return read


def why(crowd: Crowd, look: Look) -> str:
    asked = crowd.at(look.one).id
    body = {"query": QUESTION, "id": asked, "viewer": viewer_of(look)}
    return ask(crowd, look, "POST", "/v1/recall/why", json=body).replace(asked, "")


def page(path: str) -> Way:
    return lambda crowd, look: ask(crowd, look, "GET", f"/w/{crowd.names[look.workspace]}{path}")


# What an agent is told: what reaches the viewer. A hook names the session and the agent, and no task.
TOLD: dict[str, Way] = {
    "recall": recall,
    "list by importance": list_all,
    "prepare": prepare,
    "a prompt's hook": prompt,
    "a start's hook": session_start,
    "goals": get_as_viewer("/v1/goals", limit="200"),
    "lessons": get_as_viewer("/v1/lessons", limit="200"),
    "lessons about it": get_as_viewer("/v1/lessons", q=QUESTION),
    "entities": get_as_viewer("/v1/entities", limit="200"),
    "graph": get_as_viewer("/v1/graph", around="billing"),
    "arcs": get_as_viewer("/v1/arcs"),
    "duplicates": get_as_viewer("/v1/duplicates"),
    "candidates": get_as_viewer("/v1/candidates"),
    "admissions": get_as_viewer("/v1/admissions", limit="200"),
    "memories": get("/v1/memories", limit="200"),
    "memories of the user": get("/v1/memories", scope="user", limit="200"),
    "memories of a session": list_of_session,
    "memories of an agent": list_of_scope("agent"),
    "memories of a session's scope": list_of_scope("session"),
    "facts": get("/v1/facts", scope="user"),
}
# What somebody looks at: all that is no other person's own.
LOOKED_AT: dict[str, Way] = {
    "a memory": read_one("/v1/memories/{id}"),
    "a memory by the end of its id": read_one("/v1/memories/{end}"),
    "a memory in another's store": read_one("/v1/memories/{id}?"),
    "a goal": read_one("/v1/goals/{id}"),
    "why": why,
    "stats": get("/v1/stats"),
    "sources": get("/v1/sources"),
    "journal": get("/v1/journal"),
    "friction": get("/v1/history", ask="friction"),
    "history of a file": get("/v1/history", ask="blame", about="billing"),
    "sessions": get("/v1/sessions"),
    "a search over sessions": get("/v1/sessions/search", query=QUESTION),
    "a session": lambda crowd, look: ask(crowd, look, "GET", f"/v1/sessions/{look.session}"),
    "hook runs": get("/v1/hook-runs"),
    "today": get("/v1/today"),
    "audit": get("/v1/audit"),
    "refused": get("/v1/refused"),
    "unsaved statements": get("/v1/unsaved-statements"),
    "jobs": get("/v1/jobs"),
    "queue": get("/v1/queue"),
    "workspaces": get("/v1/workspaces"),
    "overview": page("/"),
    "timeline": page("/timeline?archived=also"),
    "timeline events": page("/timeline/rows"),
    "a memory's page": read_one("/w/{workspace}/memories/{id}"),
    "recall lab": page("/recall?q=billing+service+port&k=20"),
    "entities' page": page("/entities"),
    "goals' page": page("/goals"),
    "lessons' page": page("/lessons"),
    "facts' page": page("/facts"),
    "sessions' page": page("/sessions"),
    "a session's page": lambda crowd, look: page(f"/sessions/{look.session}")(crowd, look),
    "arcs' page": page("/arcs"),
    "inbox": page("/inbox?kind=done"),
    "about me": page("/me"),
    "hooks' page": page("/hooks"),
}
WAYS = TOLD | LOOKED_AT


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = CrowdServer(tmp_path_factory.mktemp("crowd"))
    yield server
    server.close()


@pytest.mark.timeout(900)
def test_nothing_of_a_persons_own_reaches_another(server):
    asked, hidden, shown, acts = Counter(), Counter(), Counter(), Counter()

    # A failure names its look; to make its crowd smaller would take longer than a test may.
    @settings(max_examples=EXAMPLES, phases=(Phase.reuse, Phase.generate), suppress_health_check=list(HealthCheck))
    @given(crowd_plans(tuple(WAYS)))
    def verify(plan: CrowdPlan):
        crowd = server.open(plan)
        if not crowd.memories:
            return
        acts.update(shared=sum(bool(memory.shared_in) for memory in crowd.memories))
        for look in plan.looks:
            found = crowd.named_in(WAYS[look.way](crowd, look))
            if not crowd.may(look.asker, look.workspace) and look.way not in ("hook runs", "workspaces", "today"):
                assert found == [], look
                continue
            rule = _is_shown if look.way in TOLD else _is_open
            leaked = [memory for memory in found if not rule(memory, look, crowd)]
            assert leaked == [], (look, leaked)
            asked[look.way] += 1
            hidden[look.way] += sum(not rule(memory, look, crowd) for memory in crowd.memories)
            shown[look.way] += len(found)

    verify()
    assert acts["shared"] > 3
    # Nearly each had something to hide, as chance will have it; and those that tell of memories told of some.
    assert set(asked) == set(WAYS)
    assert len(+hidden) > len(WAYS) - 4
    assert len({"recall", "list by importance", "memories", "timeline", "a memory", "recall lab"} - set(+shown)) <= 1
    assert len(+shown) > 10


def _is_shown(memory, look: Look, _crowd: Crowd) -> bool:
    return memory.is_told_to(look)


def _is_open(memory, look: Look, crowd: Crowd) -> bool:
    places = (look.workspace,)
    if look.way == "hook runs":
        # A person's runs are theirs in whatever workspace they were told.
        places = WORKSPACES
    elif look.way in ("today", "overview"):
        # The day of every workspace that the person may enter.
        places = tuple(place for place in WORKSPACES if crowd.may(look.asker, place))
    return any(memory.is_open_to(look.asker, place) for place in places)


def test_permitted_viewers_find_every_visible_memory(server):
    """The test above would hold for a server that is silent."""

    @settings(max_examples=5, phases=(Phase.reuse, Phase.generate), suppress_health_check=list(HealthCheck))
    @given(crowd_plans(("recall", "list by importance")))
    def verify(plan: CrowdPlan):
        crowd = server.open(plan)
        for look in plan.looks:
            if crowd.may(look.asker, look.workspace):
                found = {memory.id for memory in crowd.named_in(list_all(crowd, look))}
                expected = {memory.id for memory in crowd.memories if memory.is_told_to(look)}
                assert found == expected, look

    verify()
