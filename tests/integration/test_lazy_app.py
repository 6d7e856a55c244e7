import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from werkzeug.exceptions import HTTPException
from werkzeug.test import Client

from web.http.app import create_app
from web.http.hook_app import create_hook_app
from web.http.lazy_app import LazyApp


@pytest.fixture
def grown(container):
    """What the app grew into so far."""
    return []


@pytest.fixture
def with_hooks(container):
    """The apps of hooks that were created so far."""
    return []


@pytest.fixture
def app(container, grown, with_hooks):
    def create_hooks(metrics):
        with_hooks.append(create_hook_app(container, metrics))
        return with_hooks[-1]

    def create_whole(metrics):
        grown.append(create_app(container, metrics))
        return grown[-1]

    return LazyApp(container, create_hooks, create_whole)


@pytest.fixture
def ask(app, container):
    client = Client(app)

    def ask(method, path, **given):
        return client.open(path, method=method, headers={"Authorization": f"Bearer {container.token}"}, **given)

    return ask


def test_health_writes_and_recalls_are_answered_before_the_rest_is_loaded(ask, grown, with_hooks):
    assert ask("GET", "/healthz").status_code == 200
    written = ask("POST", "/v1/memories", json={"content": "The ferry leaves at seven."})
    assert written.status_code == 201
    answer = ask("POST", "/v1/recall", json={"query": "when does the ferry leave"})
    assert [hit["id"] for hit in answer.json["results"]] == [written.json["id"]]
    assert grown == with_hooks == []


PROMPT = {"hook_event_name": "UserPromptSubmit", "session_id": "session-1", "prompt": "When does the ferry leave?"}


def test_the_first_request_may_be_a_hook_and_loads_only_hooks(ask, container, grown, with_hooks):
    workspace = container.workspace(container.settings.workspace)
    folder = workspace.paths.root
    answer = ask("POST", "/hooks/claude-code", json={**PROMPT, "cwd": str(folder)})
    assert answer.status_code in {200, 204}
    assert (grown, len(with_hooks)) == ([], 1)
    assert [run.event for run in container.agents.hook_runs.page(10, None).items] == ["UserPromptSubmit"]
    ask("POST", "/hooks/codex", json=PROMPT)
    assert (grown, len(with_hooks)) == ([], 1)


def test_an_unknown_hook_is_refused_by_the_full_app(ask, grown):
    assert ask("POST", "/hooks/other-host", json=PROMPT).status_code == 404
    assert len(grown) == 1


def test_hooks_that_arrive_together_share_one_app_and_its_services(app, container, with_hooks):
    with ThreadPoolExecutor(8) as pool:
        apps = set(pool.map(lambda _: app.load_hooks(), range(8)))
        services = set(pool.map(lambda _: id(container.agents), range(8)))
    assert (apps, len(services)) == ({with_hooks[0]}, 1)
    assert len(with_hooks) == 1


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/v1/facts", 200), ("GET", "/openapi.json", 200), ("GET", "/nowhere", 404), ("PUT", "/healthz", 405)],
)
def test_any_other_request_loads_the_rest_of_the_app(ask, grown, method, path, status):
    ask("POST", "/v1/memories", json={"content": "The ferry leaves at seven."})
    assert ask(method, path).status_code == status
    assert len(grown) == 1
    assert ask("GET", "/healthz").status_code == 200
    assert len(grown) == 1


def test_request_metrics_continue_after_the_app_loads_the_rest(ask):
    ask("GET", "/healthz")
    ask("POST", "/v1/recall", json={"query": ""})
    assert (
        'reverie_http_requests_total{endpoint="/healthz",method="GET",status="200"} 1.0' in ask("GET", "/metrics").text
    )


def test_without_the_token_both_refuse(app, grown):
    for path in ("/v1/memories", "/v1/facts"):
        assert Client(app).get(path).status_code == 401
    assert len(grown) == 1


@pytest.mark.parametrize("stage", ["_first", "_hooks"])
def test_partial_app_hides_no_route_of_the_full_app(app, container, stage):
    app.load_hooks()
    smaller = {"_first": app._first, "_hooks": app._hooks.app}[stage].url_map.bind("")
    for rule in create_app(container).url_map.iter_rules():
        path = rule.rule.replace("<path:", "<")
        for name in rule.arguments:
            path = path.replace(f"<{name}>", "some-name")
        for method in rule.methods - {"OPTIONS"}:
            try:
                endpoint, _ = smaller.match(path, method)
            except HTTPException:
                continue
            assert endpoint == rule.endpoint, path


def test_it_is_loaded_once_however_many_ask(app, grown):
    assert app.load_rest() is app.load_rest()
    assert len(grown) == 1


def test_a_hook_waits_for_its_own_app_only(container, with_hooks):
    """A hook that comes while the full app is being loaded is answered before that."""
    started, may_end = threading.Event(), threading.Event()

    def create_whole(metrics):
        started.set()
        may_end.wait(60)
        return create_app(container, metrics)

    app = LazyApp(container, partial(create_hook_app, container), create_whole)
    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(app.load_rest)
        started.wait(60)
        answer = Client(app).post(
            "/hooks/claude-code", json=PROMPT, headers={"Authorization": f"Bearer {container.token}"}
        )
        was_loading = not loading.done()
        may_end.set()
    assert (answer.status_code < 300, was_loading) == (True, True)
