"""The Python client against a served home: each call, answered at once and awaited, and the contract that it covers."""

import asyncio
import contextlib
import dataclasses
import itertools
import json
import typing
from datetime import UTC, datetime

import httpx
import pytest
from reverie_client import (
    AsyncReverie,
    Conflict,
    InvalidField,
    NotConfigured,
    NotFound,
    Reverie,
    Scope,
    ServerUnreachable,
    Unauthorized,
    Unavailable,
    UnexpectedAnswer,
    Viewer,
)
from reverie_client.calls import GoalChanges, GoalFields, MemoryChanges, MemoryFields, RecallFields
from reverie_client.client import Call, Contract, ListCall, WatchCall
from reverie_client.request import Request
from reverie_client.watching import PATH

from config.paths import HomePaths
from pipeline.features.team.servers import TeamServer, delete_server, write_server
from tests.fakes.in_process import fast_settings, open_web
from tests.support.served import serve_home
from web.http.app import create_app

# What no program needs that is not Reverie's own: sign-in and hooks of hosts, review and upkeep by a person, imports,
# what a monitor reads, and what is planned.
LEFT_OUT = {
    "POST /hooks/claude-code",
    "POST /hooks/codex",
    "POST /hooks/gemini",
    "POST /hooks/qwen-code",
    "POST /hooks/copilot",
    "POST /hooks/cursor",
    "POST /hooks/antigravity",
    "POST /hooks/opencode",
    "POST /hooks/kilo",
    "POST /hooks/pi",
    "POST /hooks/cline",
    "POST /mcp",
    "GET /mcp",
    "GET /v1/journal",
    "GET /v1/switches",
    "GET /v1/today",
    "GET /v1/lessons/report",
    "POST /v1/workspaces/move",
    "GET /v1/hook-runs",
    "GET /v1/hook-runs/{run_id}",
    "POST /v1/hook-runs",
    "GET /v1/sessions",
    "GET /v1/sessions/{session_id}",
    "PATCH /v1/sessions/{session_id}",
    "POST /v1/sessions/{session_id}/distill",
    "GET /v1/sessions/search",
    "GET /v1/sessions/questions",
    "GET /v1/sessions/import",
    "GET /v1/history",
    "POST /v1/turns",
    "GET /v1/refused",
    "POST /v1/refused/{refused_id}/accept",
    "GET /v1/goals/{goal_id}",
    "POST /v1/dashboard/links",
    "GET /metrics",
    "GET /v1/errors",
    "POST /v1/recall/why",
    "POST /v1/memories/{memory_id}/move",
    "POST /v1/memories/{memory_id}/edges",
    "DELETE /v1/memories/{memory_id}/edges",
    "POST /v1/entities/{entity_id}/merge",
    "POST /v1/entities/{entity_id}/split",
    "GET /v1/conflicts",
    "POST /v1/conflicts/{kept_id}/{other_id}",
    "GET /v1/duplicates",
    "POST /v1/duplicates/{pair_id}",
    "GET /v1/candidates",
    "POST /v1/candidates/{memory_id}",
    "GET /v1/audit",
    "POST /v1/audit/{entry_id}/undo",
    "GET /v1/admissions",
    "GET /v1/unsaved-statements",
    "POST /v1/incognito",
    "GET /v1/incognito",
    "GET /v1/sources",
    "GET /v1/sources/{source}/items",
    "PUT /v1/sources/{source}/items",
    "POST /v1/sources/{source}/forget",
    "GET /v1/entities",
    "GET /v1/entities/{entity_id}",
    "GET /v1/graph",
    "GET /v1/arcs",
    "POST /v1/queue/retry",
    "POST /v1/rebuild",
    "GET /v1/jobs",
    "POST /v1/jobs/{name}",
    "GET /v1/changes",
    "POST /v1/changes",
    "POST /v1/devices",
    "POST /v1/memories/{memory_id}/share",
    "DELETE /v1/memories/{memory_id}/share",
    "GET /v1/people",
    "POST /v1/people",
    "GET /v1/people/me",
    "DELETE /v1/people/{person_id}",
    "POST /v1/people/{person_id}/tokens",
    "DELETE /v1/people/{person_id}/tokens",
    "DELETE /v1/people/{person_id}/tokens/{token_id}",
    "PUT /v1/people/{person_id}/grants/{workspace}",
    "DELETE /v1/people/{person_id}/grants/{workspace}",
    "GET /v1/access-log",
}
JUNE = datetime(2026, 6, 1, tzinfo=UTC)
JULY = datetime(2026, 7, 1, tzinfo=UTC)


class Awaited:
    """An AsyncReverie whose calls are awaited at once, so that one test asks both clients."""

    def __init__(self, loop, client):
        self._loop = loop
        self._client = client

    def __getattr__(self, name):
        method = getattr(self._client, name)
        if not callable(method):
            return method

        async def collect(items):
            return [item async for item in items]

        def call(*args, **kwargs):
            answer = method(*args, **kwargs)
            return self._loop.run_until_complete(collect(answer) if hasattr(answer, "__aiter__") else answer)

        return call


class Served(typing.NamedTuple):
    url: str
    paths: HomePaths


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    settings = fast_settings(tmp_path_factory.mktemp("client") / "home")
    with serve_home(settings) as port:
        yield Served(f"http://127.0.0.1:{port}", settings.paths)


@pytest.fixture
def team(served, tmp_path):
    """A team's server that the home knows as `acme` during a test; its address and the token of its home."""
    theirs = fast_settings(tmp_path / "acme")
    with serve_home(theirs) as port:
        server = TeamServer("acme", f"http://127.0.0.1:{port}", theirs.paths.token())
        write_server(served.paths.servers, server)
        yield server.url, server.token
    delete_server(served.paths.servers, "acme")


@pytest.fixture(params=["sync", "async"])
def client(request, served):
    url, token = served.url, served.paths.token()
    workspace = f"{request.node.originalname.replace('_', '-')}-{request.param}"[-60:].strip("-")
    if request.param == "sync":
        with Reverie(url, token, workspace) as reverie:
            yield reverie
        return
    with asyncio.Runner() as runner:
        reverie = AsyncReverie(url, token, workspace)
        yield Awaited(runner.get_loop(), reverie)
        runner.run(reverie.close())


def test_a_memory_is_written_found_changed_archived_restored_and_purged(client):
    said = "Staging runs PostgreSQL on port 5433"
    receipt = client.remember(said, kind="decision", tags=["db"], metadata={"a": None})
    assert receipt.outcome == "created"
    [hit] = client.recall("which port does staging use", k=1).results
    assert (hit.id, hit.kind) == (receipt.id, "decision")
    memory = client.memory(receipt.id)
    assert (memory.tags, memory.metadata, memory.scope) == (("db",), {"a": None}, Scope(kind="workspace"))
    assert memory.created_at.tzinfo is not None
    assert client.edit(receipt.id, content="Staging runs on port 6543", pinned=True).pinned
    assert client.memory(receipt.id).history[0].content == said
    assert client.archive(receipt.id).archived_at is not None
    assert [memory.id for memory in client.memories(archived=True)] == [receipt.id]
    assert client.restore(receipt.id).archived_at is None
    assert client.purge(receipt.id).purged
    with pytest.raises(NotFound):
        client.memory(receipt.id)


def test_batch_is_written_completely_and_listed_over_pages(client):
    contents = [f"Observation {number} of the upper lock" for number in range(450)]
    receipts = client.remember_all([{"content": content, "session_id": "s1"} for content in contents]).results
    assert len({receipt.id for receipt in receipts}) == 450
    assert {memory.content for memory in client.memories(session_id="s1")} == set(contents)
    assert len(list(client.memories(limit=201))) == 201
    assert len(list(client.memories(limit=3))) == 3
    [session] = client.recall_sessions("upper lock", k=1).results
    assert session.session_id == "s1"


def test_a_batch_with_an_invalid_item_names_it_and_writes_nothing(client):
    client.remember("So that there is a workspace")
    with pytest.raises(InvalidField) as caught:
        client.remember_all([{"content": "Good"}, {"content": ""}])
    assert "1" in caught.value.errors[0].loc
    assert caught.value.status == 422
    assert len(list(client.memories())) == 1


def test_a_scope_keeps_a_memory_to_its_owner(client):
    client.remember("The lamp is green", scope=Scope(kind="session", id="s7"), session_id="s7")
    assert client.recall("which lamp is green").results == ()
    [hit] = client.recall("which lamp is green", viewer=Viewer(session="s7")).results
    assert hit.content == "The lamp is green"
    assert [memory.id for memory in client.memories(scope=Scope(kind="session", id="s7"))] == [hit.id]


def test_a_fact_keeps_the_values_it_had(client):
    client.set_fact("staging", "a b.port", 5433, valid_from=JUNE)
    assert client.set_fact("staging", "a b.port", 6543, valid_from=JULY).replaced is not None
    assert client.fact("staging", "a b.port").value == 6543
    held = client.fact("staging", "a b.port", as_of=datetime(2026, 6, 9, tzinfo=UTC))
    assert (held.value, held.valid_to) == (5433, JULY)
    assert {fact.value for fact in client.fact_history("staging", "a b.port")} == {5433, 6543}
    assert [fact.value for fact in client.facts(subject="staging", as_of=JULY)] == [6543]
    client.end_fact("staging", "a b.port")
    with pytest.raises(NotFound):
        client.fact("staging", "a b.port")


def test_goals_and_lessons_keep_their_records(client):
    goal = client.add_goal("Move staging behind PgBouncer", due_at=JULY)
    assert client.edit_goal(goal.id, status="in_progress", progress=0.5).progress == 0.5
    assert [found.due_at for found in client.goals(status="in_progress")] == [JULY]
    client.remember("Run the migration check before a deploy", kind="lesson", source="user")
    [lesson] = client.lessons("migration check before a deploy")
    assert lesson.surface_id is not None
    assert client.report_lesson(lesson.surface_id, followed=True).lesson_id == lesson.id
    assert [known.followed for known in client.lessons()] == [1]


def test_a_message_is_prepared_and_the_workspace_described(client):
    client.remember("Staging runs PostgreSQL on port 5433", kind="decision")
    briefing = client.prepare("Which port does staging run PostgreSQL on?", session_id="s1")
    assert "5433" in briefing.text
    assert client.stats().memories["active"] == 1
    assert client.queue().pending
    assert client.health().status == "ok"
    assert briefing.project.workspace in {workspace.id for workspace in client.workspaces()}


def test_python_client_writes_to_and_reads_from_a_team(client, team):
    url, token = team
    written = client.remember("Parcels leave from the depot in Graz", to="acme").id
    client.remember_all([{"content": "Staging listens on port 5433"}, {"content": "We deploy on Mondays"}], to="acme")
    client.set_fact("depot", "gates", 4, to="acme")
    client.add_goal("Move the depot", to="acme")
    with Reverie(url, token, client.server.workspace) as theirs:
        assert len(list(theirs.memories())) == 5
        assert theirs.fact("depot", "gates").value == 4
        assert [goal.title for goal in theirs.goals()] == ["Move the depot"]
    assert {hit.from_ for hit in client.recall("parcels depot").results} == {"acme"}
    assert client.memory(written, from_="acme").content == "Parcels leave from the depot in Graz"
    # Nothing of it was written here.
    with pytest.raises(NotFound):
        client.memory(written)
    client.remember("My own", to="local")
    assert [memory.content for memory in client.memories()] == ["My own"]
    with pytest.raises(InvalidField) as refused:
        client.remember("Nobody's", to="nobody")
    assert [error.loc for error in refused.value.errors] == ["to"]


def test_a_refusal_is_typed_and_names_the_field(client, served):
    client.remember("A memory")
    other = client.remember("Another memory")
    with pytest.raises(InvalidField) as caught:
        client.remember("Fine", importance=7)
    assert [error.loc for error in caught.value.errors] == ["importance"]
    with pytest.raises(Conflict):
        client.edit(other.id, content="A memory")
    with Reverie(served.url, "wrong") as stranger, pytest.raises(Unauthorized) as refused:
        stranger.stats()
    assert refused.value.title == "Unauthorized"


def take(client, number, **options):
    """Return the first events of a watch, awaited if need be."""
    if isinstance(client, Reverie):
        with contextlib.closing(client.watch(**options)) as watched:
            return list(itertools.islice(watched, number))

    async def collect():
        async with contextlib.aclosing(client._client.watch(**options)) as watched:
            return [await anext(watched) for _ in range(number)]

    return client._loop.run_until_complete(collect())


def test_events_are_watched_and_continued_after_a_cursor(client):
    fact = client.remember("Staging runs PostgreSQL on port 5433").id
    decision = client.remember("We deploy on Mondays", kind="decision").id
    client.archive(fact)
    written, other, archived = take(client, 3, after="0")
    assert [(event.type, event.memory_id) for event in (written, other, archived)] == [
        ("written", fact),
        ("written", decision),
        ("archived", fact),
    ]
    assert written.at.tzinfo is not None
    assert written.title is None
    assert take(client, 1, after=other.cursor) == [archived]
    [event] = take(client, 1, after="0", kinds=["decision"], types=["written", "purged"], titles=True)
    assert (event.memory_id, event.title) == (decision, "We deploy on Mondays")
    with pytest.raises(InvalidField):
        take(client, 1, after="yesterday")


class CutStreams(httpx.BaseTransport):
    """A server whose streams break off, in the middle of an event too, and which is sometimes away."""

    def __init__(self, answers):
        self.answers = list(answers)
        self.asked = []

    def handle_request(self, request):
        self.asked.append(request.url.params.get("after"))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, int):
            headers = {"Content-Type": "application/problem+json"}
            return httpx.Response(answer, json={"status": answer}, headers=headers)
        return httpx.Response(200, content=b"retry: 0\nid: 0.0.0\n\n" + answer)


def show_event(cursor):
    data = {
        "cursor": cursor,
        "type": "written",
        "at": "2026-06-01T00:00:00.000Z",
        "workspace": "w",
        "memory_id": cursor,
    }
    return f"id: {cursor}\nevent: written\ndata: {json.dumps(data)}\n\n".encode()


def test_a_watch_goes_on_where_a_connection_ended():
    answers = [
        show_event("1.1.0") + show_event("2.1.0")[:40],
        httpx.ConnectError("away"),
        503,
        b":\n\n" + show_event("2.1.0"),
        httpx.ReadTimeout("silent"),
        show_event("3.1.0"),
        401,
    ]
    transport = CutStreams(answers)
    with Reverie("http://127.0.0.1:1", "token", transport=transport) as client:
        watched = client.watch()
        found = [next(watched).cursor for _ in range(3)]
        with pytest.raises(Unauthorized):
            next(watched)
    assert found == ["1.1.0", "2.1.0", "3.1.0"]
    assert transport.asked == [None, "1.1.0", "1.1.0", "1.1.0", "2.1.0", "2.1.0", "3.1.0"]


@pytest.mark.parametrize(("answer", "error"), [(httpx.ConnectError("away"), ServerUnreachable), (503, Unavailable)])
def test_a_watch_that_cannot_begin_is_an_error(answer, error):
    with Reverie("http://127.0.0.1:1", "token", transport=CutStreams([answer])) as client, pytest.raises(error):
        next(client.watch())


def test_python_client_without_arguments_finds_the_data_directory(tmp_path, monkeypatch):
    settings = fast_settings(tmp_path / "home")
    for name in ("REVERIE_HOST", "REVERIE_PORT", "REVERIE_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("REVERIE_HOME", str(settings.home))
    with serve_home(settings) as port, Reverie() as client:
        with pytest.raises(ServerUnreachable):
            client.health()
        (settings.home / "config.toml").write_text(f'port = {port}\nhost = "0.0.0.0"\nworkspace = "billing"\n')
        with Reverie() as configured:
            configured.remember("Invoices are sent on the 1st")
            HomePaths(settings.home).renew_token()
            assert configured.stats().workspace == "billing"


def test_local_token_is_sent_to_no_other_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path))
    (tmp_path / "token").write_text("secret")
    with pytest.raises(NotConfigured, match="Pass a token"):
        Reverie("http://elsewhere.example")
    with Reverie("http://elsewhere.example", "theirs") as client:
        assert client.server.token() == "theirs"


class Scripted:
    """A transport that answers as told, an exception by raising it, and counts what it was asked."""

    def __init__(self, *outcomes):
        self.outcomes = list(outcomes)
        self.asked = 0

    def __call__(self, _request):
        self.asked += 1
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


HEALTHY = {"status": "ok", "version": "9", "encoder": "ready", "uptime_s": 1.0, "idle_s": 0.0, "new_in_9": True}
STORED = {"id": "1", "outcome": "created"}
PROBLEM = {"Content-Type": "application/problem+json"}


@pytest.fixture(params=["sync", "async"])
def scripted(request, monkeypatch):
    """Make a client of a transport that answers by a script, and that never waits between tries."""
    monkeypatch.setattr("reverie_client.client.FIRST_DELAY_S", 0.0)
    with asyncio.Runner() as runner:

        def make(*outcomes):
            script = Scripted(*outcomes)
            kind = Reverie if request.param == "sync" else AsyncReverie
            client = kind("http://127.0.0.1:1", "token", transport=httpx.MockTransport(script))
            return script, client if kind is Reverie else Awaited(runner.get_loop(), client)

        yield make


def busy():
    return httpx.Response(503, headers=PROBLEM | {"Retry-After": "0"}, json={"title": "Busy", "detail": "store busy"})


def test_python_client_retries_reads_and_ignores_unknown_fields(scripted):
    script, client = scripted(httpx.ReadError("broken"), httpx.Response(200, json=HEALTHY))
    assert client.health().version == "9"
    assert script.asked == 2


def test_a_write_is_not_sent_again_when_it_may_have_arrived(scripted):
    script, client = scripted(httpx.ReadTimeout("late"), httpx.Response(201, json=STORED))
    with pytest.raises(ServerUnreachable, match="in time"):
        client.remember("Once")
    assert script.asked == 1


def test_a_write_that_was_surely_not_stored_is_sent_again(scripted):
    script, client = scripted(httpx.ConnectError("refused"), busy(), httpx.Response(201, json=STORED))
    assert client.remember("Once").id == "1"
    assert script.asked == 3


def test_tries_end(scripted):
    script, client = scripted(busy(), busy(), busy(), busy())
    with pytest.raises(Unavailable) as caught:
        client.stats()
    assert (script.asked, caught.value.retry_after_s, caught.value.detail) == (3, 0.0, "store busy")


@pytest.mark.parametrize(
    "answer",
    [
        {"status_code": 200, "text": "<html>"},
        {"status_code": 200, "json": [1]},
        {"status_code": 200, "json": {"other": 1}},
        {"status_code": 404, "json": {}},
    ],
    ids=["not JSON", "a list", "other fields", "no problem document"],
)
def test_python_client_rejects_answers_of_another_program(scripted, answer):
    _, client = scripted(httpx.Response(**answer))
    with pytest.raises(UnexpectedAnswer):
        client.health()


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    container = open_web(fast_settings(tmp_path_factory.mktemp("contract") / "home"))
    headers = {"Authorization": f"Bearer {container.token}"}
    yield create_app(container).test_client().get("/openapi.json", headers=headers).get_json()
    container.close()


def collect_requests():
    """Build the request of every call, each path part named by its parameter."""
    made = {}
    for name, call in vars(Contract).items():
        if isinstance(call, WatchCall):
            made[name] = Request("GET", PATH, call._build)
        if isinstance(call, (Call, ListCall)):
            parts = {"facts": ["subject", "attribute"], "remember_all": [[]]}
            code = call._build.__code__
            names = code.co_varnames[: code.co_argcount]
            required = names[: len(names) - len(call._build.__defaults__ or ())]
            arguments = parts.get(name, [f"{{{argument}}}" for argument in required]) if name != "facts" else []
            keywords = {"followed": True} if name == "report_lesson" else {}
            built = call._build(*arguments, **keywords)
            made[name] = built.request if isinstance(call, ListCall) else built
    return made


def test_each_route_is_covered_or_deliberately_left_out(document):
    served = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    made = collect_requests().values()
    covered = {f"{request.method} {request.path.replace('%7B', '{').replace('%7D', '}')}" for request in made}
    assert covered & LEFT_OUT == set()
    assert covered | LEFT_OUT == served


@pytest.mark.parametrize(
    ("fields", "schema", "not_offered"),
    [
        (MemoryFields, "MemoryBody", {"content"}),
        (MemoryChanges, "PatchBody", set()),
        (RecallFields, "RecallBody", {"query", "group"}),
        (GoalFields, "GoalBody", {"title"}),
        (GoalChanges, "GoalPatch", set()),
        (Viewer, "ViewerBody", set()),
    ],
)
def test_python_client_arguments_equal_the_server_schema(document, fields, schema, not_offered):
    assert (
        set(typing.get_type_hints(fields)) == set(document["components"]["schemas"][schema]["properties"]) - not_offered
    )


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        ("Health", "HealthAnswer"),
        ("Receipt", "ReceiptAnswer"),
        ("MemoryRecord", "RecordAnswer"),
        ("LessonHit", "LessonHitAnswer"),
        ("SessionHit", "SessionHitAnswer"),
        ("FoundSession", "FoundSessionAnswer"),
        ("RecallAnswer", "RecallAnswer"),
        ("Fact", "FactAnswer"),
        ("FactReceipt", "SetAnswer"),
        ("Goal", "GoalAnswer"),
        ("Lesson", "LessonAnswer"),
        ("Briefing", "PrepareAnswer"),
        ("Arc", "ArcAnswer"),
        ("Stats", "StatsAnswer"),
        ("Queue", "QueueAnswer"),
        ("WorkspaceSummary", "WorkspaceAnswer"),
    ],
)
def test_python_client_answers_have_every_field_of_the_schema(document, kind, schema):
    import reverie_client.answers

    described = {field.name.rstrip("_") for field in dataclasses.fields(getattr(reverie_client.answers, kind))}
    assert described == set(document["components"]["schemas"][schema]["properties"])
