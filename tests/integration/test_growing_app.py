import pytest
from werkzeug.exceptions import HTTPException
from werkzeug.test import Client

from web.app import create_app
from web.lazy_app import LazyApp


@pytest.fixture
def grown(container):
    """What the app grew into so far."""
    return []


@pytest.fixture
def app(container, grown):
    def create_whole(metrics):
        grown.append(create_app(container, metrics))
        return grown[-1]

    return LazyApp(container, create_whole)


@pytest.fixture
def ask(app, container):
    client = Client(app)

    def ask(method, path, **given):
        return client.open(path, method=method, headers={"Authorization": f"Bearer {container.token}"}, **given)

    return ask


def test_health_writes_and_recalls_are_answered_before_the_rest_is_loaded(ask, grown):
    assert ask("GET", "/healthz").status_code == 200
    written = ask("POST", "/v1/memories", json={"content": "The ferry leaves at seven."})
    assert written.status_code == 201
    answer = ask("POST", "/v1/recall", json={"query": "when does the ferry leave"})
    assert [hit["id"] for hit in answer.json["results"]] == [written.json["id"]]
    assert grown == []


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/v1/facts", 200), ("GET", "/openapi.json", 200), ("GET", "/nowhere", 404), ("PUT", "/healthz", 405)],
)
def test_whatever_else_is_asked_for_loads_the_rest(ask, grown, method, path, status):
    ask("POST", "/v1/memories", json={"content": "The ferry leaves at seven."})
    assert ask(method, path).status_code == status
    assert len(grown) == 1
    assert ask("GET", "/healthz").status_code == 200
    assert len(grown) == 1


def test_what_was_counted_before_counts_on(ask):
    ask("GET", "/healthz")
    ask("POST", "/v1/recall", json={"query": ""})
    assert (
        'reverie_http_requests_total{endpoint="/healthz",method="GET",status="200"} 1.0' in ask("GET", "/metrics").text
    )


def test_without_the_token_both_refuse(app, grown):
    for path in ("/v1/memories", "/v1/facts"):
        assert Client(app).get(path).status_code == 401
    assert len(grown) == 1


def test_no_route_of_the_first_app_hides_one_of_the_whole(app, container):
    first, whole = app._routes, create_app(container).url_map
    for rule in whole.iter_rules():
        path = rule.rule.replace("<path:", "<")
        for name in rule.arguments:
            path = path.replace(f"<{name}>", "some-name")
        for method in rule.methods - {"OPTIONS"}:
            try:
                endpoint, _ = first.match(path, method)
            except HTTPException:
                continue
            assert endpoint == rule.endpoint, path


def test_it_is_loaded_once_however_many_ask(app, grown):
    assert app.grow() is app.grow()
    assert len(grown) == 1
